"""What runs between a handler's context and its worker, wherever the handler is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Protocol

from laneway.domain.claim import Claim
from laneway.domain.payload import PayloadLimits
from laneway.domain.redaction import redact
from laneway.domain.text import escape_text
from laneway.errors import InvalidInput, Refused

LONGEST_LINE = 8192


class Interrupted(BaseException):
    """Raised inside a plain handler at its next call of the context once it should stop.

    Not an Exception, so that `except Exception` in a handler does not swallow it.
    """


def after_finish(verb: str) -> Refused:
    """What a context says to all that writes about a job which its handler has finished itself.

    The handler's own transaction has deleted the lease, and holds it as long as it is open: to wait
    for it there would be to wait for oneself.
    """
    return Refused(f"ctx.{verb} was called after ctx.finish: the job ends with your transaction")


class HandlerChannel(Protocol):
    """What a context needs from the worker it runs in, wherever that is."""

    claim: Claim
    payload: Any
    checkpoint: Any
    resources: SimpleNamespace
    limits: PayloadLimits
    has_database: bool

    @property
    def stop_reason(self) -> str | None: ...
    @property
    def ran_s(self) -> float: ...
    def report(
        self,
        *,
        stage: str | None = None,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
        checkpoint: str | None = None,
    ) -> None: ...
    def log(self, level: str, message: str) -> None: ...
    # What can be asked: requests.py.
    async def ask(self, what: str, **body: Any) -> Any: ...
    def ask_blocking(self, what: str, **body: Any) -> Any: ...


class Log:
    """`ctx.log("text")`, or by level: `ctx.log.warning("text")`. Kept with the attempt."""

    __slots__ = ("_channel",)

    def __init__(self, channel: HandlerChannel) -> None:
        self._channel = channel

    def __call__(self, message: object, level: str = "info") -> None:
        if level not in ("debug", "info", "warning", "error"):
            raise InvalidInput("level", "must be debug, info, warning or error")
        # Before it is cut: half a secret is not known as one.
        text = escape_text(redact(str(message)))
        if len(text) > LONGEST_LINE:
            text = text[:LONGEST_LINE] + " …"
        self._channel.log(level, text)

    def debug(self, message: object) -> None:
        self(message, "debug")

    def info(self, message: object) -> None:
        self(message, "info")

    def warning(self, message: object) -> None:
        self(message, "warning")

    def error(self, message: object) -> None:
        self(message, "error")
