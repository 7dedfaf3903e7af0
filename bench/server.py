"""The PostgreSQL that everything is measured on: a separate server, durable as in production."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Self

import psutil
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from laneway.embedded import EmbeddedPostgres
from laneway.store.migrate import migrate

Conn = psycopg.Connection[tuple[Any, ...]]

_ROOMY = 8 * 1024**3
_PREFIX = "laneway-bench-"
_JOB_TABLES = (
    *("jobs", "ready", "delayed", "lease", "outcome", "attempts", "progress", "logs", "job_keys"),
    *("slot_usage", "workers", "leader", "key_holders", "key_waiters", "limit_usage"),
    *("limit_starts", "slot_holders", "limit_holders"),
    *("flows", "flow_tallies", "links", "open_edges", "countdowns", "waiting", "arrivals"),
    *("handler_waits", "sent_events", "event_checks", "kept_results"),
)


def _settings() -> dict[str, str]:
    is_roomy = psutil.virtual_memory().total >= _ROOMY
    return {
        "fsync": "on",
        "synchronous_commit": "on",
        "shared_buffers": "1GB" if is_roomy else "256MB",
        "max_connections": "200",
        # Checkpoints happen between runs, in `Database.vacuum_and_checkpoint`.
        "max_wal_size": "8GB",
        "checkpoint_timeout": "1h",
        # Times a run up to its last commit.
        "track_commit_timestamp": "on",
        "log_line_prefix": "%m [%p] %d|%a| ",
    }


def _remove_left_behind(places: Path) -> None:
    """Remove the files of killed runs; their servers ended with them."""
    for home in places.glob(f"{_PREFIX}*"):
        pid = home.name.removeprefix(_PREFIX)
        is_ours = home.is_dir() and not home.is_symlink() and home.stat().st_uid == os.getuid()
        if is_ours and pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(home, ignore_errors=True)


class Server:
    """A server that starts on entry; on exit it stops and its files are removed."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        """`settings` of PostgreSQL come before those of all benchmarks."""
        places = Path(tempfile.gettempdir())
        _remove_left_behind(places)
        self.home = places / f"{_PREFIX}{os.getpid()}"
        self._postgres = EmbeddedPostgres(self.home, settings={**_settings(), **(settings or {})})

    def __enter__(self) -> Self:
        self._postgres.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._postgres.stop("immediate")
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def dsn(self) -> str:
        return self._postgres.dsn

    @property
    def log_path(self) -> Path:
        return self._postgres.log_path

    def database(self, name: str) -> Database:
        """A new, migrated database."""
        database = self.empty_database(name)
        migrate(database.dsn)
        return database

    def empty_database(self, name: str) -> Database:
        """A new database without tables."""
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            conn.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        return Database(make_conninfo(self.dsn, dbname=name), self.home)

    def drop(self, database: Database) -> None:
        """Drop a database to free its memory and disk."""
        database.close()
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            name = psycopg.conninfo.conninfo_to_dict(database.dsn)["dbname"]
            conn.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(str(name))))


class GivenServer(Server):
    """A server that the caller of this process starts and stops."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def __enter__(self) -> Self:
        self.home = Path(tempfile.mkdtemp(prefix="laneway-bench-given-"))
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def dsn(self) -> str:
        return self._dsn

    @property
    def log_path(self) -> Path:
        raise NotImplementedError("only the account of the server may read its log")


class Database:
    """A database under measurement, with one connection for the benchmark's queries."""

    def __init__(self, dsn: str, home: Path) -> None:
        self.dsn = dsn
        self.home = home
        self.conn: Conn = psycopg.connect(dsn, autocommit=True)

    def close(self) -> None:
        self.conn.close()

    def value(self, query: str, *params: object) -> Any:
        """The only column of the only row."""
        row = self.conn.execute(query.encode(), params).fetchone()
        assert row is not None
        return row[0]

    def empty(self) -> None:
        """Remove all jobs; no worker may be running."""
        # Earlier versions have fewer tables.
        names = self.value(
            "select string_agg('laneway.' || relname, ', ') from pg_class"
            " where relnamespace = 'laneway'::regnamespace and relname = any (%s)",
            list(_JOB_TABLES),
        )
        self.conn.execute(f"truncate {names}".encode())

    def vacuum_and_checkpoint(self) -> None:
        """Do the work of autovacuum and the checkpointer now, instead of during a run."""
        self.conn.execute("vacuum (analyze)")
        self.conn.execute("checkpoint")

    def tune_default(self, **columns: object) -> None:
        """Change the lane `default`."""
        for column, value in columns.items():
            self.conn.execute(
                sql.SQL("update laneway.worker_lanes set {} = %s where name = 'default'").format(
                    sql.Identifier(column)
                ),
                [value],
            )

    def tune_limit(self, name: str, max_concurrent: int) -> None:
        """Create or change a limit."""
        self.conn.execute(
            "insert into laneway.limits (name, max_concurrent) values (%s, %s)"
            " on conflict (name) do update set max_concurrent = excluded.max_concurrent",
            [name, max_concurrent],
        )

    def pause_claims(self) -> None:
        """Pause all claims."""
        self.conn.execute("update laneway.control set paused = true")

    def resume_claims(self) -> None:
        """Resume claims and wake the workers, as `laneway resume` does."""
        self.conn.execute("update laneway.control set paused = false")
        self.conn.execute("select pg_notify('laneway', 'wake *')")
