"""Looks at the server rather than at jobs: is it there, what stands between, what holds it back.

The probes open plain connections of their own, because they ask about connections.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any, Literal, NamedTuple
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
from laneway.store.failures import translated
from laneway.store.login import logging_in
from laneway.store.server_settings import ENCODING
from laneway.store.statement import Row, Statement, scalar

OLDEST_SERVER = 140000
PROBE_S = 3.0


class ServerState(NamedTuple):
    """What the server says of itself; `now` is its clock."""

    version: str
    version_number: int
    is_standby: bool
    now: datetime
    backend_pid: int


def read_server() -> Statement[ServerState]:
    return Statement("health/read_server", lambda rows: ServerState(*rows[0]))


def current_role() -> Statement[str]:
    """The database role whose rights statements have."""
    return Statement("health/read_role", scalar)


def oldest_snapshot() -> Statement[OldSnapshot | None]:
    return Statement(
        "health/find_oldest_snapshot", lambda rows: OldSnapshot(*rows[0]) if rows else None
    )


# A claim holds its locks for milliseconds.
_BLOCKS_FOR_S = 1.0


def find_blockers(*, age_s: float = _BLOCKS_FOR_S) -> Statement[list[Blocker]]:
    """Sessions that have held what claims lock for this long, the oldest first."""
    return Statement(
        "health/find_blockers", lambda rows: [Blocker(*row) for row in rows], {"age": age_s}
    )


class LostSample(NamedTuple):
    """Jobs in no state among those looked at; `is_whole`: there are no others."""

    ids: list[UUID]
    is_whole: bool


def find_lost(*, newest: int, places: int, each: int) -> Statement[LostSample]:
    """Jobs that are in no state, as after some tables were truncated or restored.

    Looks at the newest jobs, and at some in each of a number of places spread over the others.
    """
    return Statement(
        "health/find_lost",
        lambda rows: LostSample([row[0] for row in rows if row[0] is not None], rows[0][1]),
        {"newest": newest, "places": places, "each": each},
    )


class LostAmong(NamedTuple):
    """Numbers of jobs in no state, and after which number the next look starts."""

    numbers: list[int]
    next_after: int | None


def look_for_lost(*, after: int, look: int) -> Statement[LostAmong]:
    """Jobs that are in no state among `look` jobs after one."""

    def decode(rows: list[Row]) -> LostAmong:
        stopped = rows[-1][0] if rows and rows[-1][1] is None else None
        return LostAmong([row[0] for row in rows if row[1] is not None], stopped)

    return Statement("health/look_for_lost", decode, {"after": after, "look": look})


def end_lost(numbers: Sequence[int]) -> Statement[list[UUID]]:
    """Ends those of the jobs that are in no state as failed; answers which."""
    return Statement(
        "health/end_lost", lambda rows: [row[0] for row in rows], {"seqs": list(numbers)}
    )


def recount_usage() -> Statement[int]:
    """Mends counters of slots and limits; answers how many differed from the leases."""
    return Statement("health/recount_usage", scalar)


class Sizes(NamedTuple):
    """How large the database is, and our tables in it, the largest first."""

    bytes: int
    tables: list[TableSize]


def measure_tables() -> Statement[Sizes]:
    def decode(rows: list[Row]) -> Sizes:
        return Sizes(rows[0][0], [TableSize(*r[1:]) for r in rows])

    return Statement("health/measure_tables", decode)


class UnhandledType(NamedTuple):
    """A job type that no live worker handles in its lane, and how long its first job has waited."""

    job_type: str
    lane: str
    waited_s: float


def find_unhandled(*, most: int) -> Statement[list[UnhandledType]]:
    """Job types that no live worker handles in their lane, among the first `most` with due jobs."""
    return Statement(
        "health/find_unhandled", lambda rows: [UnhandledType(*row) for row in rows], {"most": most}
    )


class Lapsed(NamedTuple):
    """Leases over their time that nobody took back yet."""

    leases: int
    oldest_s: float | None


def count_lapsed() -> Statement[Lapsed]:
    return Statement("health/count_lapsed", lambda rows: Lapsed(*rows[0]))


class Rights(NamedTuple):
    """What others may do in the schema that they should not."""

    open_definers: list[str]
    open_functions: list[str]
    without_path: list[str]
    writers: list[str]


def read_rights() -> Statement[Rights]:
    """Functions that everybody may call, and roles that write past functions."""

    def decode(rows: list[Row]) -> Rights:
        def named(kind: str, is_definer: bool) -> list[str]:
            return [row[1] for row in rows if (row[0], row[2]) == (kind, is_definer)]

        return Rights(
            named("function", True), named("function", False), named("path", True),
            named("role", False),
        )  # fmt: skip

    return Statement("health/read_rights", decode)


def check_conninfo(dsn: str) -> None:
    """Refuses a DSN that libpq cannot read, without repeating any of it: it may hold a password."""
    try:
        conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise ConfigError(
            "database_url: PostgreSQL cannot read it; write postgresql://user@host:port/database"
        ) from None


def libpq_environment(dsn: str) -> dict[str, str]:
    """The DSN as variables of libpq's own programs: an argument would show its password to `ps`."""
    check_conninfo(dsn)
    variables = {
        option.keyword.decode(): option.envvar.decode()
        for option in Conninfo.get_defaults()
        if option.envvar
    }
    given = conninfo_to_dict(dsn)
    return {variables[name]: str(value) for name, value in given.items() if name in variables}


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
    """Without anything a pooler could refuse."""
    return _connected(
        dsn,
        autocommit=True,
        prepare_threshold=None,
        connect_timeout=timeout_s,
        client_encoding=ENCODING,
        application_name="laneway probe",
    )


async def reach(dsn: str, settings: Settings) -> None:
    """Returns when the server takes our connections, or raises with its own words at once.

    A pool would go on trying until its deadline and then only say that time is over.
    """
    check_conninfo(dsn)
    with translated():
        conn = await connect(dsn, settings, "probe")
        await conn.close()


async def probe(dsn: str, timeout_s: int) -> tuple[ServerState, float]:
    """What the server says of itself, and how long it took to say so."""
    async with _plain(dsn, timeout_s) as conn:
        asked = time.monotonic()
        state = await run_on(conn, read_server())
        return state, time.monotonic() - asked


def settings_named(names: Sequence[str]) -> Statement[dict[str, str]]:
    """The values of settings in the session that runs it."""
    return Statement(
        "health/read_settings", lambda rows: {row[0]: row[1] for row in rows}, {"names": [*names]}
    )


async def read_settings(dsn: str, timeout_s: int, names: Sequence[str]) -> dict[str, str]:
    """Settings as a plain session of this role gets them."""
    async with _plain(dsn, timeout_s) as conn:
        return await run_on(conn, settings_named(names))


async def sees_transaction_pooler(dsn: str, timeout_s: int) -> bool:
    """Whether two clients are given one and the same server process between transactions."""
    async with _plain(dsn, timeout_s) as first, _plain(dsn, timeout_s) as second:
        return await pooler.is_shared(first, second)


async def find_pooler(dsn: str, timeout_s: int) -> Literal["transaction", "session"] | None:
    """How a pooler that stands between us and PostgreSQL pools; None: there is none."""
    async with _plain(dsn, timeout_s) as first, _plain(dsn, timeout_s) as second:
        if await pooler.is_shared(first, second):
            return "transaction"
        return "session" if await pooler.is_between(first) else None


async def hears_notifications(dsn: str, timeout_s: int) -> bool:
    """Whether a notification reaches a connection that listens, while it is idle."""
    token = uuid4().hex
    channel = f"laneway_probe_{token}"
    async with _plain(dsn, timeout_s) as listener, _plain(dsn, timeout_s) as speaker:
        await listener.execute(SQL("listen {}").format(Identifier(channel)))
        await speaker.execute("select pg_notify(%s, %s)", [channel, token])
        heard = [n.payload async for n in listener.notifies(timeout=PROBE_S, stop_after=1)]
    return heard == [token]
