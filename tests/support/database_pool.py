"""A database that tests use one after the other: what a test has changed is put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING
from uuid import uuid4

import psycopg
from psycopg.sql import SQL, Identifier

from tests.support.kept_sessions import shared as kept_sessions

if TYPE_CHECKING:
    from tests.conftest import Server

# Then a new one is created: deleted rows slow down the next tests.
MAX_USES = 50

# Writes per table since the database was created, by the statistics that a connection reports when
# it ends. The catalog's tables are counted together: a write there is a change of the schema.
WRITES = """
select case when relnamespace = 'laneway'::regnamespace then relname::text end,
       sum(pg_stat_get_tuples_inserted(oid) + pg_stat_get_tuples_updated(oid)
           + pg_stat_get_tuples_deleted(oid))::bigint
  from pg_class
 where relkind = 'r' and not relisshared
   and relnamespace in ('laneway'::regnamespace, 'pg_catalog'::regnamespace)
 group by 1
"""
SETTINGS = """
select 1 from pg_db_role_setting join pg_database d on d.oid = setdatabase
 where d.datname = current_database()
"""
SEQUENCES = """
select format('laneway.%I', sequencename), last_value
  from pg_sequences where schemaname = 'laneway'
"""


class UsedDatabase:
    """One database, as it was after its creation, and what tests have written since."""

    def __init__(self, server: Server, template: str) -> None:
        self.name = f"test_{uuid4().hex}"
        self.uses = 0
        server.create(self.name, template)
        self._conn = psycopg.connect(
            server.dsn_of(self.name), autocommit=True, application_name="tests pool"
        )
        # Without triggers and foreign keys.
        self._conn.execute("set session_replication_role = replica")
        self._writes = self._read_writes()
        self._rows = {
            table: text for table in self._writes if table and (text := self._copy_out(table))
        }
        self._sequences: list[tuple[str, int | None]] = self._conn.execute(SEQUENCES).fetchall()

    def reset(self) -> bool:
        """Put everything back; return False if the database cannot be used again."""
        writes = self._read_writes()
        changed = [table for table, count in writes.items() if count != self._writes.get(table)]
        if None in changed or self._conn.execute(SETTINGS).fetchone():
            return False
        with self._conn.transaction():
            for table in filter(None, changed):
                self._conn.execute(SQL("delete from laneway.{}").format(Identifier(table)))
                if table in self._rows:
                    self._copy_in(table, self._rows[table])
            for sequence, last in self._sequences:
                self._conn.execute(
                    "select setval(%s, %s, %s)", [sequence, last or 1, last is not None]
                )
        self._writes = self._read_writes()
        return True

    def close(self) -> None:
        self._conn.close()

    def _read_writes(self) -> dict[str | None, int]:
        # Reports its own writes too.
        self._conn.execute("select pg_stat_force_next_flush()")
        return dict(self._conn.execute(WRITES).fetchall())

    def _copy_out(self, table: str) -> bytes:
        with self._conn.cursor().copy(
            SQL("copy laneway.{} to stdout").format(Identifier(table))
        ) as copy:
            return b"".join(copy)

    def _copy_in(self, table: str, text: bytes) -> None:
        with self._conn.cursor().copy(
            SQL("copy laneway.{} from stdin").format(Identifier(table))
        ) as copy:
            copy.write(text)


class DatabasePool:
    """Lends the database of one template to one test at a time."""

    def __init__(self, server: Server, template: str) -> None:
        self._server = server
        self._template = template
        self._used: UsedDatabase | None = None
        self._sessions = ExitStack()

    @contextmanager
    def database(self) -> Iterator[str]:
        if self._server.admin.info.server_version < 150000:
            # A connection that ends has not yet reported its writes.
            with self._server.database(self._template) as dsn:
                yield dsn
            return
        # Before the next test instead of after the last one, whose processes have ended by now.
        if self._used is not None and not self._is_reset(self._used):
            self.close()
        if self._used is None:
            self._used = UsedDatabase(self._server, self._template)
            self._sessions.enter_context(kept_sessions.of(self._server.dsn_of(self._used.name)))
        self._used.uses += 1
        name = self._used.name
        try:
            with self._server.without_leaks(name):
                yield self._server.dsn_of(name)
        except BaseException:
            self.close()
            raise

    def _is_reset(self, used: UsedDatabase) -> bool:
        if used.uses >= MAX_USES:
            return False
        self._server.disconnect(used.name)
        with suppress(psycopg.Error):
            return used.reset()
        return False

    def close(self) -> None:
        if self._used is not None:
            self._sessions.close()
            self._used.close()
            self._server.drop(self._used.name)
            self._used = None
