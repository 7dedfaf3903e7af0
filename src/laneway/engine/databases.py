"""The database connections of a worker: one for each kind of statement."""

from __future__ import annotations

from typing import NamedTuple

from laneway.config.settings import Settings
from laneway.store.database import Database


class Databases(NamedTuple):
    """Databases with one connection each, so that kinds of statements do not block each other."""

    claim: Database
    settle: Database
    rest: Database

    @classmethod
    def of(cls, dsn: str, settings: Settings) -> Databases:
        return cls(
            claim=Database(dsn, settings, role="claim", size=1),
            settle=Database(dsn, settings, role="settle", size=1),
            rest=Database(dsn, settings, role="worker", size=1),
        )

    async def close(self) -> None:
        for database in self:
            await database.close()
