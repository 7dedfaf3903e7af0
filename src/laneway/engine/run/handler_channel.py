"""The interface between a handler's context and its worker, wherever the handler runs."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Protocol

from laneway.domain.claim import Claim
from laneway.domain.payload import PayloadLimits
from laneway.domain.redaction import redact
from laneway.domain.result_type import ResultType
from laneway.domain.text import escape_text
from laneway.errors import Refused
from laneway.store.leases import Assignment

LONGEST_LINE = 8192
LEVELS = ("debug", "info", "warning", "error")


class Interrupted(BaseException):
    """Raised by the next call of `ctx` in a plain handler that should stop.

    Not an Exception, so that `except Exception` in a handler does not swallow it.
    """


def finished_error(verb: str) -> Refused:
    """The error of a write after ctx.finish.

    The handler's open transaction locks the deleted lease, so the write would wait for its own
    handler.
    """
    return Refused(f"ctx.{verb} was called after ctx.finish: the job ends with your transaction")


class HandlerChannel(Protocol):
    """The calls of a context to its worker."""

    claim: Claim
    payload: Any
    checkpoint: Any
    resources: SimpleNamespace
    limits: PayloadLimits
    has_database: bool

    @property
    def assignment(self) -> Assignment: ...
    @property
    def lane(self) -> str: ...
    @property
    def results(self) -> ResultType: ...
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
    # The requests are listed in handler_requests.py.
    async def ask(self, what: str, **body: Any) -> Any: ...
    def ask_blocking(self, what: str, **body: Any) -> Any: ...


class Log:
    """`ctx.log("%s pages", 3)`, or by level: `ctx.log.warning("slow")`. Kept with the attempt.

    A call never fails the job: a wrong format or level loses nothing.
    """

    __slots__ = ("_channel",)

    def __init__(self, channel: HandlerChannel) -> None:
        self._channel = channel

    def __call__(self, message: object, *args: object, level: str = "info") -> None:
        # Earlier versions took the level as the second argument.
        if len(args) == 1 and _is_level(args[0]) and "%" not in _text(message):
            level, args = str(args[0]), ()
        self._write(level if _is_level(level) else "info", message, args)

    def debug(self, message: object, *args: object) -> None:
        self._write("debug", message, args)

    def info(self, message: object, *args: object) -> None:
        self._write("info", message, args)

    def warning(self, message: object, *args: object) -> None:
        self._write("warning", message, args)

    def error(self, message: object, *args: object) -> None:
        self._write("error", message, args)

    def _write(self, level: str, message: object, args: tuple[object, ...]) -> None:
        # Redact before cutting: half of a secret is not recognized.
        text = escape_text(redact(_formatted(message, args)))
        if len(text) > LONGEST_LINE:
            text = text[:LONGEST_LINE] + " …"
        self._channel.log(level, text)


def _is_level(value: object) -> bool:
    return isinstance(value, str) and value in LEVELS


def _formatted(message: object, args: tuple[object, ...]) -> str:
    """The message with its arguments, as `logging` formats them; a wrong format loses nothing."""
    text = _text(message)
    if not args:
        return text
    # `logging` too fills "%(name)s" from a single mapping.
    named = args[0] if len(args) == 1 and isinstance(args[0], Mapping) and args[0] else args
    try:
        return text % named
    except Exception:
        return f"{text} {_text(args)}"


def _text(value: object) -> str:
    """The value as text; its type if its own code cannot say it."""
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"
