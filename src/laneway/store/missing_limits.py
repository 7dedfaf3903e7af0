"""Creates limits that code names and the database lacks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from laneway.domain.limit import Limit, check_limit_name, unbounded
from laneway.domain.suggestion import suggest
from laneway.errors import InvalidInput
from laneway.observability.safe_logger import SafeLogger
from laneway.store import limits

if TYPE_CHECKING:
    from laneway.store.database import Database

log = SafeLogger("laneway")

NONE: Final[Mapping[str, Limit]] = MappingProxyType({})


async def create_missing(
    database: Database, names: Iterable[str], by: str, declared: Mapping[str, Limit] = NONE
) -> None:
    """Create each named limit that does not exist: as declared, otherwise unbounded."""
    wanted = set(names)
    if not wanted:
        return
    known = await database.run(limits.find(wanted))
    await create(database, wanted - known, by, declared)


async def create(
    database: Database, names: Iterable[str], by: str, declared: Mapping[str, Limit] = NONE
) -> None:
    """Create these limits, except those that another process creates meanwhile."""
    for name in sorted(names):
        limit = declared.get(name) or unbounded(name)
        is_new = await database.run(limits.create(limit, by)) is not None
        if is_new and name not in declared:
            known = {*declared, *await database.run(limits.names())} - {name}
            log.warning(
                "limit %s did not exist and was created without a bound: to bound it,"
                " `laneway limits set %s --max-concurrent N`%s",
                name, name, suggest(name, known),
            )  # fmt: skip
        elif is_new:
            bound = "unbounded" if limit.max_concurrent is None else limit.max_concurrent
            log.info("created the limit %s: max_concurrent %s, rate %s", name, bound, limit.rate)


class KnownLimits:
    """The limits that exist as far as this process knows; creates the others at their first use."""

    def __init__(self, database: Database, by: str, declared: Mapping[str, Limit] = NONE) -> None:
        self._database = database
        self._by = by
        self._declared = declared
        self._names: set[str] = set()

    @asynccontextmanager
    async def using(self, names: Collection[str]) -> AsyncIterator[None]:
        """Create missing limits before the block; an error in it may mean that one was deleted."""
        new = {check_limit_name(name, "limit") for name in names} - self._names
        if new:
            await create_missing(self._database, new, self._by, self._declared)
            self._names |= new
        try:
            yield
        except InvalidInput:
            self._names -= set(names)
            raise
