"""The database itself: versions, sizes, and the oldest transaction."""

from __future__ import annotations

from laneway.domain.storage import Storage
from laneway.store import health, migrate
from laneway.store.database import Database


async def describe(db: Database) -> Storage:
    """Versions, sizes and the oldest transaction of another program; no credentials."""
    schema = await db.run(migrate.read_status())
    sizes = await db.run(health.measure_tables())
    # The functions have no migration number.
    applied = [name for name in schema.applied if name != migrate.definitions().name]
    return Storage(
        server_version=(await db.run(health.read_server())).version,
        schema_version=applied[-1] if applied else None,
        pending=tuple(schema.pending),
        unknown=tuple(schema.unknown),
        changed=tuple(schema.changed),
        bytes=sizes.bytes,
        tables=tuple(sizes.tables),
        oldest_transaction=await db.run(health.oldest_snapshot()),
    )
