"""The job types known to this process, and the check of their arguments."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from laneway.domain.approval import Approval
from laneway.domain.json_schema import MAX_BYTES
from laneway.domain.suggestion import suggest
from laneway.observability.safe_logger import SafeLogger

if TYPE_CHECKING:
    from laneway.domain.arguments import Arguments
    from laneway.domain.limit import Limit
    from laneway.store.statement import Statement
    from laneway.store.workers import Published

log = SafeLogger("laneway")

FRESH_S: Final = 5.0
_MAX_TYPES: Final = 1024
_MAX_CHARS: Final = 4 * 1024 * 1024

Check = Callable[[object], object]
Run: TypeAlias = "Callable[[Statement[Any]], Awaitable[Any]]"
# Unknown job types that were logged, in this process.
_logged: set[str] = set()


class KnownHandler(Protocol):
    """The attributes of a handler that a submit reads; None means the job type's default."""

    @property
    def arguments(self) -> Arguments: ...
    @property
    def priority(self) -> int | None: ...
    @property
    def max_retries(self) -> int | None: ...
    @property
    def approval(self) -> Approval | None: ...
    @property
    def max_age_s(self) -> float | None: ...
    @property
    def unique_for_s(self) -> float | None: ...
    @property
    def unique_by(self) -> tuple[str, ...] | None: ...


class KnownHandlers(Protocol):
    """The handlers of this process, and the limits that it declares."""

    @property
    def limits(self) -> Mapping[str, Limit]: ...
    @property
    def job_types(self) -> list[str]: ...
    def get(self, job_type: str, /) -> KnownHandler | None: ...
    def needs(self, job_type: str, /) -> str | None: ...


class Uniqueness(NamedTuple):
    """The defaults of a job type for unique_for, in seconds, and unique_by."""

    unique_for: float | None = None
    unique_by: tuple[str, ...] | None = None


class _Published(NamedTuple):
    fresh_until: float
    # JSON text.
    schema: str | None
    unique: Uniqueness


class Catalog:
    """Local handlers, otherwise the schemas that workers published, cached for five seconds."""

    def __init__(self, handlers: KnownHandlers | None) -> None:
        self._handlers = handlers
        self._published: dict[str, _Published] = {}
        self._size = 0

    def handler(self, job_type: str) -> KnownHandler | None:
        return self._handlers.get(job_type) if self._handlers is not None else None

    def needs(self, job_type: str) -> str | None:
        """The first of analysis and approval that a local handler requires."""
        return self._handlers.needs(job_type) if self._handlers is not None else None

    async def refresh(self, job_types: Collection[str], run: Run) -> None:
        """Reads the published schemas of those types that have no local handler."""
        now = time.monotonic()
        unknown = [
            name
            for name in job_types
            if self.handler(name) is None
            and ((known := self._published.get(name)) is None or known.fresh_until <= now)
        ]
        if not unknown:
            return
        from laneway.store import workers

        found: dict[str, Published] = await run(workers.published(unknown))
        if len(self._published) + len(unknown) > _MAX_TYPES or self._size > _MAX_CHARS:
            self._published.clear()
            self._size = 0
        for name in unknown:
            record = found.get(name)
            text = None if record is None else record.arguments
            # Keep enough of a schema that is too long for the check to refuse it.
            text = text[: MAX_BYTES + 1] if text and text != "null" else None
            unique = Uniqueness()
            if record is not None:
                by = record.unique_by
                unique = Uniqueness(record.unique_for_s, None if by is None else tuple(by))
            self._published[name] = _Published(now + FRESH_S, text, unique)
            self._size += len(text or "")
        missing = [
            name
            for name in unknown
            if name not in _logged and (name not in found or not found[name].is_published)
        ]
        if missing and self._handlers is not None and len(_logged) < _MAX_TYPES:
            _logged.update(missing)
            names = {*self._handlers.job_types, *await run(workers.published_names())}
            for name in missing:
                log.warning(
                    "job type %s: no worker has published it, and this application has no handler"
                    " for it; its jobs wait until a worker has one%s",
                    name, suggest(name, names),
                )  # fmt: skip

    def uniqueness_of(self, job_type: str) -> Uniqueness:
        """The defaults of the local handler, else of the published type."""
        handler = self.handler(job_type)
        if handler is not None:
            return Uniqueness(handler.unique_for_s, handler.unique_by)
        published = self._published.get(job_type)
        return Uniqueness() if published is None else published.unique

    def check_of(self, job_type: str) -> Check | None:
        """The check of payloads of this type; None if its arguments are not known."""
        handler = self.handler(job_type)
        if handler is not None:
            return handler.arguments.validate
        published = self._published.get(job_type)
        if published is None or published.schema is None:
            return None
        from laneway.domain.arguments import validate_against_schema

        return partial(validate_against_schema, published.schema)
