"""Checks of the database server: reachability, poolers, blockers, sizes and rights.

The probes open separate plain connections, because they test connections.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from statistics import median
from typing import Any, Literal, LiteralString, NamedTuple
from uuid import UUID, uuid4

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo
from psycopg.sql import SQL, Identifier

from laneway.config.settings import Settings
from laneway.domain.overview import Blocker, OldSnapshot
from laneway.domain.storage import TableSize
from laneway.errors import ConfigError
from laneway.store import pooler
from laneway.store.database import connect, run_on
from laneway.store.driver_errors import translated
from laneway.store.edges import MendedWaits
from laneway.store.login import logging_in
from laneway.store.server_settings import ENCODING
from laneway.store.statement import (
    Row,
    Statement,
    first_column,
    maybe_row,
    one_row,
    rows_of,
    scalar,
)

OLDEST_SERVER = 140000
PROBE_S = 3.0


class ServerState(NamedTuple):
    """Version and role of the server; `now` is its clock."""

    version: str
    version_number: int
    is_standby: bool
    now: datetime
    backend_pid: int


def read_server() -> Statement[ServerState]:
    return Statement("health/read_server", one_row(ServerState))


def current_role() -> Statement[str]:
    """The database role that statements run as."""
    return Statement("health/read_role", scalar)


def current_database() -> Statement[str]:
    return Statement("health/read_role", lambda rows: str(rows[0][1]))


def oldest_snapshot() -> Statement[OldSnapshot | None]:
    return Statement("health/find_oldest_snapshot", maybe_row(OldSnapshot))


# Much longer than a claim, which holds its locks for milliseconds.
_BLOCKS_FOR_S = 1.0


def find_blockers(*, age_s: float = _BLOCKS_FOR_S) -> Statement[list[Blocker]]:
    """Sessions that have held locks needed by Laneway for this long, oldest first."""
    return Statement("health/find_blockers", rows_of(Blocker), {"age": age_s})


class LostSample(NamedTuple):
    """Jobs without a state in a sample; `is_whole`: the sample covers all jobs."""

    ids: list[UUID]
    is_whole: bool


def sample_lost(*, newest: int, places: int, each: int) -> Statement[LostSample]:
    """Jobs without a state, as after some tables were truncated or restored.

    Checks the newest jobs, and some jobs at each of several places spread over the others.
    """
    return Statement(
        "health/find_lost",
        lambda rows: LostSample([row[0] for row in rows if row[0] is not None], rows[0][1]),
        {"newest": newest, "places": places, "each": each},
    )


class LostAmong(NamedTuple):
    """Sequence numbers of jobs without a state, and the number after which to continue."""

    numbers: list[int]
    next_after: int | None


def look_for_lost(*, after: int, scan: int) -> Statement[LostAmong]:
    """Jobs without a state among the `scan` jobs after one."""

    def decode(rows: list[Row]) -> LostAmong:
        stopped = rows[-1][0] if rows and rows[-1][1] is None else None
        return LostAmong([row[0] for row in rows if row[1] is not None], stopped)

    return Statement("health/look_for_lost", decode, {"after": after, "scan": scan})


def end_lost(numbers: Sequence[int]) -> Statement[list[UUID]]:
    """Fails those of the jobs that have no state; returns their ids."""
    return Statement("health/end_lost", first_column, {"seqs": list(numbers)})


def recount_usage() -> Statement[int]:
    """Corrects counters of slots and limits; returns how many differed from the leases."""
    return Statement("health/recount_usage", scalar)


class StuckWaits(NamedTuple):
    """Waiting jobs that nothing would release; `is_whole`: all waiting jobs were read."""

    ids: list[UUID]
    is_whole: bool


def find_stuck_waits(*, look: int) -> Statement[StuckWaits]:
    """Jobs that wait for nothing that will come, as after some tables were restored."""

    def decode(rows: list[Row]) -> StuckWaits:
        ids = [row[0] for row in rows if row[0] is not None]
        return StuckWaits(ids, is_whole=len(ids) == len(rows))

    return Statement("health/find_stuck", decode, {"look": look})


def find_old_waits(*, look: int, age_s: float) -> Statement[list[UUID]]:
    """Jobs that have waited for an event without a timeout for this long."""
    return Statement("health/find_old_waits", first_column, {"look": look, "age": age_s})


def mend_waits(*, after: int, look: int) -> Statement[MendedWaits]:
    """Corrects such jobs among those after a number."""
    return Statement("health/mend_waits", one_row(MendedWaits), {"after": after, "look": look})


class Sizes(NamedTuple):
    """Sizes of the database and of Laneway's tables, largest first."""

    bytes: int
    tables: list[TableSize]


def measure_tables() -> Statement[Sizes]:
    def decode(rows: list[Row]) -> Sizes:
        return Sizes(rows[0][0], [TableSize(*r[1:]) for r in rows])

    return Statement("health/measure_tables", decode)


class UnhandledType(NamedTuple):
    """A job type without a live worker in its lane, and how long its first job has waited."""

    job_type: str
    lane: str
    waited_s: float


def find_unhandled(*, most: int) -> Statement[list[UnhandledType]]:
    """Job types without a live worker in their lane, among the first `most` with due jobs."""
    return Statement("health/find_unhandled", rows_of(UnhandledType), {"most": most})


class Lapsed(NamedTuple):
    """Lapsed leases that are not reclaimed yet; `is_watched`: a process runs that reclaims them."""

    leases: int
    oldest_s: float | None
    is_watched: bool


def count_lapsed() -> Statement[Lapsed]:
    return Statement("health/count_lapsed", one_row(Lapsed))


class Attention(NamedTuple):
    """Approvals, failed jobs and stopped schedules, which wait for a person."""

    awaiting_approval: int
    failed: int
    stopped_schedules: int


def count_attention(*, bound: int) -> Statement[Attention]:
    return Statement("health/count_attention", one_row(Attention), {"bound": bound})


class Rights(NamedTuple):
    """Rights in the schema that are too wide."""

    open_definers: list[str]
    open_functions: list[str]
    without_path: list[str]
    writers: list[str]


def read_rights() -> Statement[Rights]:
    """Functions open to all roles, and roles that can bypass functions."""

    def decode(rows: list[Row]) -> Rights:
        def named(kind: str, is_definer: bool) -> list[str]:
            return [row[1] for row in rows if (row[0], row[2]) == (kind, is_definer)]

        return Rights(
            named("function", True), named("function", False), named("path", True),
            named("role", False),
        )  # fmt: skip

    return Statement("health/read_rights", decode)


def check_conninfo(dsn: str) -> None:
    """Refuses a DSN that libpq cannot parse, without quoting it: it may hold a password."""
    try:
        conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise ConfigError(
            "database_url: cannot be parsed; use postgresql://user@host:port/database"
        ) from None


def libpq_environment(dsn: str) -> dict[str, str]:
    """The DSN as environment variables for libpq programs: `ps` would show arguments."""
    check_conninfo(dsn)
    variables = {
        option.keyword.decode(): option.envvar.decode()
        for option in Conninfo.get_defaults()
        if option.envvar
    }
    parameters = conninfo_to_dict(dsn)
    return {variables[name]: str(value) for name, value in parameters.items() if name in variables}


@asynccontextmanager
async def _connected(dsn: str, **options: Any) -> AsyncIterator[AsyncConnection[Any]]:
    check_conninfo(dsn)
    with translated():
        with logging_in(dsn):
            conn = await AsyncConnection.connect(dsn, **options)
        try:
            yield conn
        finally:
            await conn.close()


def _plain(dsn: str, timeout_s: int) -> AbstractAsyncContextManager[AsyncConnection[Any]]:
    """A connection without options that a pooler could refuse."""
    return _connected(
        dsn,
        autocommit=True,
        prepare_threshold=None,
        connect_timeout=timeout_s,
        client_encoding=ENCODING,
        application_name="laneway probe",
    )


async def check_reachable(dsn: str, settings: Settings) -> None:
    """Connects once; raises the server's error at once.

    A pool would retry until its timeout and hide the cause.
    """
    check_conninfo(dsn)
    with translated():
        conn = await connect(dsn, settings, "probe")
        await conn.close()


async def probe(dsn: str, timeout_s: int) -> tuple[ServerState, float]:
    """The state of the server and the round-trip time in seconds."""
    async with _plain(dsn, timeout_s) as conn:
        started = time.monotonic()
        state = await run_on(conn, read_server())
        return state, time.monotonic() - started


class SettingFound(NamedTuple):
    """The value of a server setting, and where it was set, in the words of pg_settings."""

    value: str
    source: str


def settings_named(names: Sequence[str]) -> Statement[dict[str, SettingFound]]:
    """Settings of the session that runs the statement."""
    return Statement(
        "health/read_settings",
        lambda rows: {row[0]: SettingFound(row[1], row[2]) for row in rows},
        {"names": [*names]},
    )


class RoleSetting(NamedTuple):
    """A setting that `alter role` gave to a role, for one database or for all."""

    role: str
    is_of_database: bool
    name: str
    value: str


def role_settings(names: Sequence[str]) -> Statement[list[RoleSetting]]:
    """Settings of the database roles that use Laneway."""
    return Statement("health/read_role_settings", rows_of(RoleSetting), {"names": [*names]})


async def read_settings(dsn: str, timeout_s: int, names: Sequence[str]) -> dict[str, SettingFound]:
    """Settings of a plain session of this role."""
    async with _plain(dsn, timeout_s) as conn:
        return await run_on(conn, settings_named(names))


async def sees_transaction_pooler(dsn: str, timeout_s: int) -> bool:
    """Whether two clients share one server process between transactions."""
    async with _plain(dsn, timeout_s) as first, _plain(dsn, timeout_s) as second:
        return await pooler.is_shared(first, second)


async def find_pooler(dsn: str, timeout_s: int) -> Literal["transaction", "session"] | None:
    """The mode of a pooler in front of PostgreSQL; None: no pooler."""
    async with _plain(dsn, timeout_s) as first, _plain(dsn, timeout_s) as second:
        if await pooler.is_shared(first, second):
            return "transaction"
        return "session" if await pooler.has_pooler(first) else None


class CommitSpeed(NamedTuple):
    """Median times of a round trip and of a commit, in seconds; the commit includes a round trip.

    `commit` is None where the role may not write to the write-ahead log.
    """

    round_trip: float
    commit: float | None


async def measure_commits(dsn: str, timeout_s: int, times: int = 9) -> CommitSpeed:
    """Time round trips and commits that wait for the disk; writes to no table."""
    async with _plain(dsn, timeout_s) as conn:
        round_trip = await _median_of(conn, times, "select 1")
        try:
            # A record in the write-ahead log, so that the commit waits as others do.
            return CommitSpeed(
                round_trip,
                await _median_of(
                    conn, times, "select pg_catalog.pg_logical_emit_message(true, 'laneway', '')"
                ),
            )
        except psycopg.errors.InsufficientPrivilege:
            return CommitSpeed(round_trip, None)


async def _median_of(conn: AsyncConnection[Any], times: int, statement: LiteralString) -> float:
    """The median of several runs; the first one opens caches and is not counted."""
    taken = []
    for _ in range(times + 1):
        started = time.perf_counter()
        await conn.execute(statement, prepare=False)
        taken.append(time.perf_counter() - started)
    return median(taken[1:])


async def receives_notifications(dsn: str, timeout_s: int) -> bool:
    """Whether a notification reaches an idle listening connection."""
    token = uuid4().hex
    channel = f"laneway_probe_{token}"
    async with _plain(dsn, timeout_s) as listener, _plain(dsn, timeout_s) as sender:
        await listener.execute(SQL("listen {}").format(Identifier(channel)))
        await sender.execute("select pg_notify(%s, %s)", [channel, token])
        received = [n.payload async for n in listener.notifies(timeout=PROBE_S, stop_after=1)]
    return received == [token]
