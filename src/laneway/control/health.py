"""The checks of `laneway doctor`, in the order in which they depend on each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from shlex import quote
from typing import Final

from laneway.control import server_settings
from laneway.control.audit import listing
from laneway.domain.audit import AuditFilter
from laneway.domain.job_type import forget_command
from laneway.domain.redaction import redact_dsn
from laneway.domain.text import visible
from laneway.errors import LanewayError, MissingRight, UnsuitableDatabase
from laneway.store import health, job_types, migrate, workers
from laneway.store.database import Database

SKEW_S: Final = 2.0
LAPSED_S: Final = 30.0
OLD_SNAPSHOT_S: Final = 300.0
STALE_SHOWN: Final = 100
# Job types with due jobs that `doctor` reads.
TYPES_SCANNED: Final = 10_000
# Audit actions of remote workers whose tokens lack workers:declare.
LIMIT_REFUSED: Final = "AcquireLimits"
DECLARATION_IGNORED: Final = "DeclareTypes"
LACKS_S: Final = 7 * 86_400.0
LACKS_SHOWN: Final = 50
# Jobs that `doctor` reads: the newest, and some at each of several places.
NEWEST_SCANNED: Final = 20_000
PLACES: Final = 20
SCANNED_PER_PLACE: Final = 1000
REVOKE_PUBLIC: Final = (
    "run `laneway db migrate`, or as the owner"
    " `revoke execute on all functions in schema laneway from public`"
)


class Finding(StrEnum):
    """The result of a check: warn is worth knowing, fail blocks work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One check; `next` is the command or setting that fixes the finding."""

    name: str
    finding: Finding
    message: str
    next: str | None = None

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "finding": self.finding.value,
            "message": self.message,
            "next": self.next,
        }


def _ok(name: str, message: str) -> HealthCheck:
    return HealthCheck(name, Finding.OK, message)


def _warn(name: str, message: str, step: str) -> HealthCheck:
    return HealthCheck(name, Finding.WARN, message, step)


def _fail(name: str, message: str, step: str) -> HealthCheck:
    return HealthCheck(name, Finding.FAIL, message, step)


async def examine(db: Database) -> AsyncIterator[HealthCheck]:
    """Run check by check; stop early if the rest would repeat the same failure."""
    found = await check_server(db)
    yield found
    if found.finding is Finding.FAIL:
        return
    try:
        schema = await _allowed(db, "schema", check_schema)
    except UnsuitableDatabase as error:
        yield _fail("schema", error.message, error.cure)
        return
    yield schema
    pooler = await check_pooler(db)
    yield pooler
    if pooler.finding is Finding.FAIL:
        return
    yield await check_listen(db)
    yield await check_settings(db)
    yield await check_clock(db)
    if schema.finding is not Finding.FAIL:
        for name, check in (
            ("workers", check_workers),
            ("leases", check_leases),
            ("blockers", check_blockers),
            ("jobs", check_lost),
            ("job types", check_publishers),
            ("handlers", check_handlers),
            ("remote tokens", check_remote_tokens),
            ("rights", check_rights),
        ):
            yield await _allowed(db, name, check)
    yield await _allowed(db, "snapshots", check_snapshots)


async def _allowed(
    db: Database, name: str, check: Callable[[Database], Awaitable[HealthCheck]]
) -> HealthCheck:
    """The check, or a finding that the role may not run it; a failure for the schema."""
    try:
        return await check(db)
    except MissingRight as error:
        role = await db.run(health.current_role())
        found = _fail if check is check_schema else _warn
        return found(
            name,
            f"not checked: the database role {role} lacks a right ({error.message})",
            "run `laneway doctor` as the schema's owner, or as a role with the rights of"
            " `laneway db grants --role server`",
        )


async def check_server(db: Database) -> HealthCheck:
    """The server is reachable, new enough, and a primary."""
    name = "database"
    where = redact_dsn(db.dsn) or "PGHOST, PGSERVICE …"
    try:
        server, _ = await health.probe(db.dsn, db.settings.connect_timeout)
    except LanewayError as error:
        return _fail(name, f"{where}: {error}", "set LANEWAY_DATABASE_URL to a running PostgreSQL")
    text = f"PostgreSQL {server.version} at {where}"
    if server.version_number < health.OLDEST_SERVER:
        return _fail(name, f"{text} is older than 14", "use PostgreSQL 14 or newer")
    if server.is_standby:
        return _fail(name, f"{text} is a standby", "point LANEWAY_DATABASE_URL at the primary")
    return _ok(name, text)


async def check_schema(db: Database) -> HealthCheck:
    """Every migration of this code is applied unchanged, and no newer one."""
    name = "schema"
    try:
        state = await asyncio.to_thread(migrate.status, db.dsn)
    except UnsuitableDatabase:
        raise
    except LanewayError as error:
        return _fail(name, str(error), "laneway db status")
    if state.pending:
        return _fail(name, f"not applied yet: {', '.join(state.pending)}", "laneway db migrate")
    if state.changed:
        return _fail(
            name, f"changed since applied: {', '.join(state.changed)}", "laneway db status"
        )
    if state.unknown:
        return _warn(
            name, f"newer than this code: {', '.join(state.unknown)}", "upgrade Laneway here"
        )
    return _ok(name, f"up to date at {state.applied[-1]}")


async def check_pooler(db: Database) -> HealthCheck:
    """LANEWAY_POOLER matches the connection."""
    name = "pooler"
    pooling = await health.find_pooler(db.dsn, db.settings.connect_timeout)
    seen = pooling == "transaction"
    if seen and db.settings.pooler is False:
        text = "the connection uses a transaction pooler, but LANEWAY_POOLER is false"
        return _fail(name, text, "set LANEWAY_POOLER=true")
    if seen and db.settings.pooler is None:
        return _ok(name, "a transaction pooler, detected: no prepared statements, no LISTEN")
    if db.settings.pooler and not seen:
        return _warn(
            name,
            "LANEWAY_POOLER is set but no transaction pooler was detected",
            "unset LANEWAY_POOLER if you use none",
        )
    if pooling == "session":
        return _ok(name, "a session pooler: notifications and session settings work")
    return _ok(name, "a transaction pooler, as configured" if seen else "none: a direct connection")


async def _is_shared(db: Database) -> bool:
    if db.settings.listen_dsn is not None:
        return False
    return await health.sees_transaction_pooler(db.dsn, db.settings.connect_timeout)


async def check_listen(db: Database) -> HealthCheck:
    """Notifications arrive where they are expected."""
    name = "listen"
    settings = db.settings
    if not settings.can_listen or (settings.pooler is None and await _is_shared(db)):
        return _ok(name, "off: workers poll at their lanes' intervals")
    dsn = settings.listen_dsn or db.dsn
    if await health.receives_notifications(dsn, settings.connect_timeout):
        return _ok(name, "notifications arrive: jobs start immediately")
    step = "set LANEWAY_LISTEN_DSN to a direct connection, or LANEWAY_LISTEN=false"
    return _warn(name, "notifications do not arrive: jobs start at the next poll", step)


async def check_settings(db: Database) -> HealthCheck:
    """No setting of the server or the role harms jobs."""
    name = "settings"
    limit_s = db.settings.connect_timeout
    is_pooled = bool(db.settings.pooler) or await health.sees_transaction_pooler(db.dsn, limit_s)
    found = await health.read_settings(db.dsn, limit_s, server_settings.NAMES)
    broken = server_settings.harmful(found, is_pooled=is_pooled)
    if not broken:
        return _ok(name, "no harmful PostgreSQL setting")
    text = "; ".join(f"{rule.name} = {found[rule.name]}: {rule.effect}" for rule in broken)
    return _warn(name, text, " ".join(rule.cure for rule in broken))


async def check_clock(db: Database) -> HealthCheck:
    """This host's clock agrees with the database's, for people: jobs use the latter only."""
    name = "clock"
    server, took = await health.probe(db.dsn, db.settings.connect_timeout)
    skew = (server.now - datetime.now(UTC)).total_seconds() + took / 2
    text = f"the database is {abs(skew):.3f} s {'ahead of' if skew > 0 else 'behind'} this host"
    if abs(skew) > SKEW_S + took:
        return _warn(name, text, "synchronise the clocks (NTP): log times disagree with job times")
    return _ok(name, text)


async def check_workers(db: Database) -> HealthCheck:
    """A live worker runs jobs."""
    name = "workers"
    live = [worker for worker in await db.run(workers.listing()) if worker.is_live]
    # A server may lead without running jobs.
    running = [worker for worker in live if worker.concurrency > 0]
    if not running:
        return _warn(name, "no worker is alive: no job runs", "laneway worker APP")
    leader = next((worker.name for worker in live if worker.is_leader), None)
    leads = f"led by {leader}" if leader else "no leader yet"
    jobs = sum(worker.running for worker in running)
    return _ok(name, f"{len(running)} alive, {leads}, {jobs} jobs running")


async def check_leases(db: Database) -> HealthCheck:
    """No lease stays lapsed longer than a watchdog needs."""
    name = "leases"
    lapsed = await db.run(health.count_lapsed())
    if not lapsed.leases or lapsed.oldest_s is None:
        return _ok(name, "no lapsed lease")
    text = f"{lapsed.leases} leases lapsed, the oldest {lapsed.oldest_s:.0f} s ago"
    if lapsed.oldest_s > LAPSED_S:
        return _fail(name, f"{text}: no watchdog takes the jobs back", "laneway worker APP")
    return _ok(name, f"{text}; the watchdog takes the jobs back")


async def check_rights(db: Database) -> HealthCheck:
    """No function is open to PUBLIC, and limited roles write through functions only."""
    name = "rights"
    found = await db.run(health.read_rights())
    if found.open_definers or found.without_path:
        named = found.open_definers or found.without_path
        what = (
            "PUBLIC may call functions that write with their owner's rights"
            if found.open_definers
            else "functions with their owner's rights have no fixed search_path"
        )
        return _fail(name, f"{what}: {named[0]}{_more(named)}", REVOKE_PUBLIC)
    if found.open_functions:
        named = found.open_functions
        return _warn(name, f"PUBLIC may call {named[0]}{_more(named)}", REVOKE_PUBLIC)
    if found.writers:
        named = found.writers
        return _warn(
            name,
            f"the database role {named[0]}{_more(named)} may write jobs directly, unchecked",
            "run `laneway db grants` again for each role, once all its programs are upgraded",
        )
    return _ok(name, "no function is open to PUBLIC, no limited role writes jobs directly")


async def check_publishers(db: Database) -> HealthCheck:
    """No application that is gone restricts others, and no two publish a type differently."""
    name = "job types"
    stale = await db.run(job_types.publishers(stale_only=True, limit=STALE_SHOWN + 1))
    if stale:
        first, more = stale[0], _more(stale, STALE_SHOWN)
        step = forget_command(first.application, first.job_type)
        return _warn(
            name, f"{first}{more}: its approval policy binds others until you remove it", step
        )
    found = await db.run(workers.conflicts())
    if not found:
        return _ok(name, "applications agree about every job type")
    step = forget_command("APPLICATION", found[0].job_type)
    return _warn(
        name,
        f"{found[0]}{_more(found)}: the stricter policy applies",
        f"make the handlers equal; for an application that is gone, {step}",
    )


async def check_handlers(db: Database) -> HealthCheck:
    """A live worker handles every job type with due jobs, in its lane."""
    name = "handlers"
    found = await db.run(health.find_unhandled(most=TYPES_SCANNED))
    if not found:
        return _ok(name, "live workers handle every waiting job type")
    first = found[0]
    return _warn(
        name,
        f"no live worker handles {visible(first.job_type)} in the lane {visible(first.lane)};"
        f" its first job has waited {first.waited_s:.0f} s{_more(found)}",
        "start a worker that has the handler and serves the lane; list the jobs with"
        f" `laneway jobs ls --status approved --type {quote(visible(first.job_type))}`",
    )


async def check_remote_tokens(db: Database) -> HealthCheck:
    """No remote worker lacked workers:declare within the last week."""
    name = "remote tokens"
    limits, types = [
        await listing(
            db,
            AuditFilter(action=action, outcome="refused", newer_than=LACKS_S),
            limit=LACKS_SHOWN,
        )
        for action in (LIMIT_REFUSED, DECLARATION_IGNORED)
    ]
    problems = []
    if limits.items:
        actors = ", ".join(sorted({entry.actor for entry in limits.items}))
        problems.append(f"handlers of {actors} ask for ctx.limit, which their tokens may not hold")
    if types.items:
        actors = ", ".join(sorted({entry.actor for entry in types.items}))
        problems.append(f"{actors} declares job types that differ from the published ones")
    if not problems:
        return _ok(name, "no remote worker exceeded its token within a week")
    step = (
        "grant workers:declare in the lanes of the jobs; or name limits in the handler's limits=[…]"
        " and make declarations equal to the published ones"
    )
    return _warn(name, "; ".join(problems), step)


def _more(found: Sequence[object], most: int | None = None) -> str:
    others = len(found) - 1
    shown = f"{most - 1}+" if most is not None and len(found) > most else str(others)
    return f", and {shown} more" if others else ""


async def check_blockers(db: Database) -> HealthCheck:
    """No session blocks the rows that claims lock."""
    name = "blockers"
    found = await db.run(health.find_blockers())
    if not found:
        return _ok(name, "no session holds locks that claims need")
    text, step = (
        f"{found[0].describe()}{_more(found)}",
        f"select pg_terminate_backend({found[0].pid});",
    )
    if any(blocker.waiting for blocker in found):
        return _fail(name, f"{text}: claims wait", step)
    return _warn(name, text, step)


async def check_lost(db: Database) -> HealthCheck:
    """Every job is waiting, running or finished."""
    name = "jobs"
    found = await db.run(
        health.sample_lost(newest=NEWEST_SCANNED, places=PLACES, each=SCANNED_PER_PLACE)
    )
    most = NEWEST_SCANNED + PLACES * SCANNED_PER_PLACE
    looked_at = "" if found.is_whole else f" of {most:,} checked, the newest and a sample,"
    if not found.ids:
        return _ok(name, f"every job{looked_at} has a state")
    text = f"{len(found.ids)} jobs{looked_at} have no state, the first is {found.ids[0]}"
    return _fail(name, f"{text}: tables were truncated or restored in part", "laneway db repair")


async def check_snapshots(db: Database) -> HealthCheck:
    """No transaction of another program pins dead rows for long."""
    name = "snapshots"
    oldest = await db.run(health.oldest_snapshot())
    if oldest is None:
        return _ok(name, "no long transaction keeps vacuum from removing dead rows")
    text = (
        f"pid {oldest.pid} ({oldest.application or 'no name'}, {oldest.user}) has kept a "
        f"transaction open for {oldest.age_s:.0f} s"
    )
    if oldest.age_s > OLD_SNAPSHOT_S:
        step = f"select pg_terminate_backend({oldest.pid});"
        return _warn(name, f"{text}: vacuum cannot remove dead rows", step)
    return _ok(name, text)
