"""Checks the sub-jobs that handlers give, as a submit does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from laneway.client.catalog import Catalog
from laneway.client.spec import Request, make_entries, types_of
from laneway.domain.payload import JsonText, PayloadLimits
from laneway.errors import InvalidInput
from laneway.store.batch import Entry

if TYPE_CHECKING:
    from laneway.engine.registry import Registry
    from laneway.store.statement import Statement


class SubJobs:
    """Makes new jobs of what the handlers of one worker give to `ctx.run_all`."""

    def __init__(
        self,
        registry: Registry,
        limits: PayloadLimits,
        run: Callable[[Statement[Any]], Awaitable[Any]] | None,
        on_submitted: Callable[[set[str]], None],
    ) -> None:
        """`run` reads the job types that other workers published; None: it has no database.

        `on_submitted` wakes workers for job types.
        """
        self._catalog = Catalog(registry)
        self._limits = limits
        self._run = run
        self.on_submitted = on_submitted

    async def entries(self, jobs: Sequence[Sequence[Any]], offset: int) -> list[Entry]:
        """The jobs ready to be stored; InvalidInput names the index of a wrong one."""
        requests = [Request(name, JsonText(text), _options(given)) for name, text, given in jobs]
        try:
            types = types_of(requests)
            if self._run is not None:
                await self._catalog.refresh(types, self._run)
            return list(make_entries(self._catalog, self._limits, requests))
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
