"""The database as its keepers see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from laneway.domain.overview import OldSnapshot


@dataclass(frozen=True, slots=True)
class TableSize:
    """A table with its indexes; the rows are what the server guesses, dead ones wait for vacuum."""

    name: str
    bytes: int
    live_rows: int
    dead_rows: int
    vacuumed_at: datetime | None

    def to_dict(self) -> dict[str, object]:
        vacuumed = self.vacuumed_at
        return {
            "name": self.name,
            "bytes": self.bytes,
            "live_rows": self.live_rows,
            "dead_rows": self.dead_rows,
            "vacuumed_at": vacuumed.isoformat() if vacuumed else None,
        }


@dataclass(frozen=True, slots=True)
class Storage:
    """The server's version, where the schema stands against this code, sizes, what holds it back.

    `schema_version` is the newest migration applied that this code knows; `pending` are missing,
    `unknown` are of newer code, `changed` are other than this code has them.
    """

    server_version: str
    schema_version: str | None
    pending: tuple[str, ...]
    unknown: tuple[str, ...]
    changed: tuple[str, ...]
    bytes: int
    tables: tuple[TableSize, ...]
    oldest_transaction: OldSnapshot | None

    def to_dict(self) -> dict[str, object]:
        oldest = self.oldest_transaction
        return {
            "server_version": self.server_version,
            "schema_version": self.schema_version,
            "pending": list(self.pending),
            "unknown": list(self.unknown),
            "changed": list(self.changed),
            "bytes": self.bytes,
            "tables": [each.to_dict() for each in self.tables],
            "oldest_transaction": oldest._asdict() if oldest else None,
        }
