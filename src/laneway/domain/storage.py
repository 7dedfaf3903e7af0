"""The database as administrators see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from laneway.domain.overview import OldSnapshot


@dataclass(frozen=True, slots=True)
class TableSize:
    """A table with its indexes; row counts are the server's estimates."""

    name: str
    bytes: int
    live_rows: int
    dead_rows: int
    vacuumed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Storage:
    """Versions of server and schema, sizes, and the oldest transaction that pins dead rows.

    `schema_version` is the newest applied migration that this code knows. Of the others, `pending`
    are missing, `unknown` come from newer code, and `changed` differ from this code's.
    """

    server_version: str
    schema_version: str | None
    pending: tuple[str, ...]
    unknown: tuple[str, ...]
    changed: tuple[str, ...]
    bytes: int
    tables: tuple[TableSize, ...]
    oldest_transaction: OldSnapshot | None
