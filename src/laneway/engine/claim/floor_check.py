"""Finds jobs below the floors of a process, where its claims do not look."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from laneway.engine.claim.floors import Floors
from laneway.engine.service import Service
from laneway.observability.log_throttle import LogThrottle
from laneway.store.database import Database
from laneway.store.lanes import find_below_floors

# A look takes at most a fiftieth of the time.
EVERY_S: Final = 20.0
PAUSE_TIMES: Final = 50
# The scan visits dead rows and is aborted after this time.
LONGEST_S: Final = 2.0


class FloorCheck(Service):
    """Makes claims scan from the start again where a job appeared below a floor.

    Each look opens a separate connection, so progress and leadership never wait for it.
    """

    name: ClassVar[str] = "strays"

    def __init__(
        self,
        database: Database,
        warnings: LogThrottle,
        floors: Callable[[], Iterable[Floors]],
        on_strays: Callable[[set[str]], None],
    ) -> None:
        """`database` gives DSN and settings; its connections are not used."""
        super().__init__(warnings)
        self._database = database
        self._floors = floors
        self._on_strays = on_strays

    async def run_once(self) -> float | None:
        heights = [one for floors in self._floors() for one in floors.heights()]
        if not heights:
            return EVERY_S
        began = time.monotonic()
        try:
            strays = await self._find(heights)
        except Exception as error:
            # Return a long pause instead of raising: the service would retry too soon.
            self._warnings.warn(self.name, error)
            return _pause_s(began)
        self._warnings.resolved(self.name)
        for floors in self._floors():
            floors.forget_types(strays)
        if strays:
            self._on_strays(strays)
        return _pause_s(began)

    async def _find(self, heights: list[tuple[str, int, int]]) -> set[str]:
        given = self._database.settings
        bound = min(given.statement_timeout, LONGEST_S)
        settings = given.model_copy(update={"statement_timeout": bound})
        database = Database(self._database.dsn, settings, role="strays", size=1)
        try:
            # A transaction applies the statement timeout behind a pooler too.
            async with database.transaction() as transaction:
                return await transaction.run(find_below_floors(heights))
        finally:
            await database.close()


def _pause_s(began: float) -> float:
    return max(EVERY_S, PAUSE_TIMES * (time.monotonic() - began))
