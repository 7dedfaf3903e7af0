"""What this process knows of job types, and arguments checked by it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Final, NamedTuple, Protocol

from laneway.domain.approval import Approval
from laneway.domain.arguments import Arguments, validate_against_schema
from laneway.domain.json_schema import MOST_BYTES
from laneway.store import workers
from laneway.store.statement import Statement

FRESH_S: Final = 5.0
_MOST_TYPES: Final = 1024
_MOST_CHARS: Final = 4 * 1024 * 1024

Check = Callable[[object], object]
Run = Callable[[Statement[dict[str, workers.Published]]], Awaitable[dict[str, workers.Published]]]


class KnownHandler(Protocol):
    """A handler of this process, as far as a submit needs it; None leaves it to the job type."""

    @property
    def arguments(self) -> Arguments: ...
    @property
    def priority(self) -> int | None: ...
    @property
    def max_retries(self) -> int | None: ...
    @property
    def approval(self) -> Approval | None: ...
    @property
    def max_age(self) -> float | None: ...


class KnownHandlers(Protocol):
    """The handlers of this process."""

    def get(self, job_type: str, /) -> KnownHandler | None: ...
    def needs(self, job_type: str, /) -> str | None: ...


class _Read(NamedTuple):
    until: float
    # JSON text.
    schema: str | None


class Catalog:
    """Handlers at hand, else schemas workers published, read again after five seconds."""

    def __init__(self, handlers: KnownHandlers | None) -> None:
        self._handlers = handlers
        self._read: dict[str, _Read] = {}
        self._size = 0

    def handler(self, job_type: str) -> KnownHandler | None:
        return self._handlers.get(job_type) if self._handlers is not None else None

    def needs(self, job_type: str) -> str | None:
        """Which of analysis and approval a handler of this process asks for first."""
        return self._handlers.needs(job_type) if self._handlers is not None else None

    async def refresh(self, job_types: Collection[str], run: Run) -> None:
        """Reads what is published of those of these types that are not known here."""
        now = time.monotonic()
        unknown = [
            name
            for name in job_types
            if self.handler(name) is None
            and ((read := self._read.get(name)) is None or read.until <= now)
        ]
        if not unknown:
            return
        found = await run(workers.published(unknown))
        if len(self._read) + len(unknown) > _MOST_TYPES or self._size > _MOST_CHARS:
            self._read.clear()
            self._size = 0
        for name in unknown:
            text = found[name].arguments if name in found else None
            # Of one that is too long, enough to be refused for it.
            text = text[: MOST_BYTES + 1] if text and text != "null" else None
            self._read[name] = _Read(now + FRESH_S, text)
            self._size += len(text or "")

    def check_of(self, job_type: str) -> Check | None:
        """What refuses a payload that is no arguments of this type; None when nobody knows."""
        handler = self.handler(job_type)
        if handler is not None:
            return handler.arguments.validate
        read = self._read.get(job_type)
        if read is None or read.schema is None:
            return None
        return partial(validate_against_schema, read.schema)
