"""Checks the sub-jobs that handlers give, as a submit does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from laneway.client.catalog import Catalog, KnownHandlers
from laneway.client.spec import Request, make_entries, types_of
from laneway.domain.payload import JsonText, PayloadLimits
from laneway.errors import InvalidInput
from laneway.store.batch import Entry

if TYPE_CHECKING:
    from laneway.store.statement import Statement


# Larger payloads are checked in a thread, so that the event loop goes on.
_LARGE: Final = 64 * 1024


class SubJobs:
    """Makes new jobs of what handlers give to `ctx.run_all`."""

    def __init__(
        self,
        handlers: KnownHandlers | None,
        limits: PayloadLimits,
        run: Callable[[Statement[Any]], Awaitable[Any]],
    ) -> None:
        """`handlers` of this process, if it has some; `run` reads types that others published."""
        self._catalog = Catalog(handlers)
        self._limits = limits
        self._run = run

    async def entries(self, jobs: Sequence[Sequence[Any]], offset: int) -> list[Entry]:
        """The jobs ready to be stored; InvalidInput names the index of a wrong one."""
        requests = [Request(name, JsonText(text), _options(given)) for name, text, given in jobs]
        try:
            await self._catalog.refresh(types_of(requests), self._run)
            entries = make_entries(self._catalog, self._limits, requests)
            is_large = sum(len(text) for _, text, _ in jobs) > _LARGE
            return await asyncio.to_thread(list, entries) if is_large else list(entries)
        except InvalidInput as error:
            raise _shifted(error, offset) from None


def _options(given: dict[str, Any]) -> dict[str, Any]:
    if isinstance(at := given.get("run_at"), str):
        return {**given, "run_at": datetime.fromisoformat(at)}
    return given


def _shifted(error: InvalidInput, offset: int) -> InvalidInput:
    """The error with the index in the whole list of jobs, of which earlier parts were sent."""
    head, bracket, rest = error.field.partition("]")
    if offset and bracket and head.startswith("jobs[") and head[5:].isdigit():
        return InvalidInput(f"jobs[{int(head[5:]) + offset}]{rest}", error.rule)
    return error
