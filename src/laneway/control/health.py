"""The checks of `laneway doctor`, in the order in which they depend on each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import UTC, datetime
from shlex import quote
from typing import Final

from laneway.control import commit_speed, server_settings
from laneway.control.health_check import Finding, HealthCheck, and_more, fail, ok, warn
from laneway.control.job_type_health import (
    check_circles,
    check_failures,
    check_handlers,
    check_hooks,
    check_publishers,
    check_remote_tokens,
)
from laneway.control.server_settings import quoted
from laneway.control.waiting_health import check_waits
from laneway.domain.overview import DEAD_S, SILENT_S, WorkerRow
from laneway.domain.redaction import redact_dsn
from laneway.domain.text import visible
from laneway.domain.token import expiry_text
from laneway.errors import LanewayError, MissingRight, UnsuitableDatabase
from laneway.store import access, health, migrate, workers
from laneway.store.aborted_statements import StatementTimeout
from laneway.store.brief_waits import LOCK_TIMEOUT_S, BriefWaits
from laneway.store.database import Database
from laneway.store.missing_relations import CURE_RESTORE, describe

SKEW_S: Final = 2.0
LAPSED_S: Final = 30.0
OLD_SNAPSHOT_S: Final = 300.0
TOKENS_SHOWN: Final = 100
# Jobs that `doctor` reads: the newest, and some at each of several places.
NEWEST_SCANNED: Final = 20_000
PLACES: Final = 20
SCANNED_PER_PLACE: Final = 1000
REVOKE_PUBLIC: Final = (
    "run `laneway db migrate`, or as the owner"
    " `revoke execute on all functions in schema laneway from public`"
)


async def examine(db: Database) -> AsyncIterator[HealthCheck]:
    """Run check by check; stop early if the rest would repeat the same failure."""
    found = await check_server(db)
    yield found
    if found.finding is Finding.FAIL:
        return
    db = BriefWaits(db)
    try:
        # First: it names the session that other checks would wait for.
        blockers = await _tried(db, "blockers", check_blockers)
        schema = await _tried(db, "schema", check_schema)
    except UnsuitableDatabase as error:
        yield fail("schema", error.message, error.cure)
        return
    yield blockers
    yield schema
    pooler = await check_pooler(db)
    yield pooler
    if pooler.finding is Finding.FAIL:
        return
    yield await check_listen(db)
    yield await check_settings(db)
    yield await check_clock(db)
    yield await check_speed(db)
    if schema.finding is not Finding.FAIL:
        for name, check in (
            ("workers", check_workers),
            ("leases", check_leases),
            ("jobs", check_lost),
            ("waits", check_waits),
            ("circles", check_circles),
            ("job types", check_publishers),
            ("handlers", check_handlers),
            ("hooks", check_hooks),
            ("failures", check_failures),
            ("tokens", check_tokens),
            ("remote tokens", check_remote_tokens),
            ("rights", check_rights),
        ):
            yield await _tried(db, name, check)
    yield await _tried(db, "snapshots", check_snapshots)


async def _tried(
    db: Database, name: str, check: Callable[[Database], Awaitable[HealthCheck]]
) -> HealthCheck:
    """The check, or a finding that it waited too long or that the role may not run it."""
    try:
        return await check(db)
    except MissingRight as error:
        role = await db.run(health.current_role())
        found = fail if check is check_schema else warn
        return found(
            name,
            f"not checked: the database role {role} lacks a right ({error.message})",
            "run `laneway doctor` as the schema's owner, or as a role with the rights of"
            " `laneway db grants --role server`",
        )
    except StatementTimeout as error:
        return await _blocked(db, name, error)
    except UnsuitableDatabase:
        raise
    except LanewayError as error:
        return fail(name, f"not checked: {error}", "run `laneway doctor` again")


async def _blocked(db: Database, name: str, error: StatementTimeout) -> HealthCheck:
    """The finding for a check whose statement waited too long: the session it waited for."""
    found = await db.run(health.find_blockers(age_s=0))
    if found:
        text = f"not checked: a statement waited too long; {found[0].describe()}{and_more(found)}"
        return fail(name, text, found[0].end_command)
    return fail(
        name,
        f"not checked: {str(error).partition(': ')[0]}",
        "run `laneway doctor` again, as a superuser or a member of pg_monitor, which see"
        " the sessions of all roles",
    )


async def check_server(db: Database) -> HealthCheck:
    """The server is reachable, new enough, and a primary."""
    name = "database"
    where = redact_dsn(db.dsn) or "PGHOST, PGSERVICE …"
    try:
        server, _ = await health.probe(db.dsn, db.settings.connect_timeout)
    except LanewayError as error:
        return fail(name, f"{where}: {error}", "set LANEWAY_DATABASE_URL to a running PostgreSQL")
    text = f"PostgreSQL {server.version} at {where}"
    if server.version_number < health.OLDEST_SERVER:
        return fail(name, f"{text} is older than 14", "use PostgreSQL 14 or newer")
    if server.is_standby:
        return fail(name, f"{text} is a standby", "point LANEWAY_DATABASE_URL at the primary")
    return ok(name, text)


async def check_schema(db: Database) -> HealthCheck:
    """Every migration of this code is applied unchanged, and no newer one."""
    name = "schema"
    try:
        state = await asyncio.to_thread(migrate.status, db.dsn, lock_timeout_s=LOCK_TIMEOUT_S)
    except (UnsuitableDatabase, StatementTimeout):
        raise
    except LanewayError as error:
        return fail(name, str(error), "laneway db status")
    if not state.applied:
        return fail(name, "no Laneway schema in this database", "laneway db migrate")
    if state.pending:
        return fail(name, f"not applied yet: {', '.join(state.pending)}", "laneway db migrate")
    if state.changed:
        return fail(name, f"changed since applied: {', '.join(state.changed)}", "laneway db status")
    if state.missing:
        return fail(name, describe(state.missing), CURE_RESTORE)
    if state.unknown:
        return warn(
            name, f"newer than this code: {', '.join(state.unknown)}", "upgrade Laneway here"
        )
    return ok(name, f"up to date at {migrate.migrations()[-1].name}")


async def check_pooler(db: Database) -> HealthCheck:
    """LANEWAY_POOLER matches the connection."""
    name = "pooler"
    pooling = await health.find_pooler(db.dsn, db.settings.connect_timeout)
    seen = pooling == "transaction"
    if seen and db.settings.pooler is False:
        text = "the connection uses a transaction pooler, but LANEWAY_POOLER is false"
        return fail(name, text, "set LANEWAY_POOLER=true")
    if seen and db.settings.pooler is None:
        return ok(name, "a transaction pooler, detected: no prepared statements, no LISTEN")
    if db.settings.pooler and not seen:
        return warn(
            name,
            "LANEWAY_POOLER is set but no transaction pooler was detected",
            "unset LANEWAY_POOLER if you use none",
        )
    if pooling == "session":
        return ok(name, "a session pooler: notifications and session settings work")
    return ok(name, "a transaction pooler, as configured" if seen else "none: a direct connection")


async def _is_shared(db: Database) -> bool:
    if db.settings.listen_dsn is not None:
        return False
    return await health.sees_transaction_pooler(db.dsn, db.settings.connect_timeout)


async def check_listen(db: Database) -> HealthCheck:
    """Notifications arrive where they are expected."""
    name = "listen"
    settings = db.settings
    if not settings.can_listen or (settings.pooler is None and await _is_shared(db)):
        return ok(name, "off: workers poll at their lanes' intervals")
    dsn = settings.listen_dsn or db.dsn
    if await health.receives_notifications(dsn, settings.connect_timeout):
        return ok(name, "notifications arrive: jobs start immediately")
    step = "set LANEWAY_LISTEN_DSN to a direct connection, or LANEWAY_LISTEN=false"
    return warn(name, "notifications do not arrive: jobs start at the next poll", step)


async def check_settings(db: Database) -> HealthCheck:
    """No setting of the server, or of a role that uses Laneway, harms jobs."""
    name = "settings"
    limit_s = db.settings.connect_timeout
    is_pooled = bool(db.settings.pooler) or await health.sees_transaction_pooler(db.dsn, limit_s)
    found = await health.read_settings(db.dsn, limit_s, server_settings.NAMES)
    values = {each: setting.value for each, setting in found.items()}
    role = await db.run(health.current_role())
    database = quoted(await db.run(health.current_database()))
    texts, cures = [], []
    for rule in server_settings.harmful(values, is_pooled=is_pooled):
        texts.append(f"{rule.name} = {values[rule.name]}: {rule.effect}")
        cures.append(rule.cure(found[rule.name].source, quoted(role), database))
    for given in await db.run(health.role_settings(server_settings.NAMES)):
        if given.role == role:
            continue
        value = server_settings.in_units(given.value)
        for rule in server_settings.harmful({given.name: value}, is_pooled=is_pooled):
            texts.append(f"{rule.name} = {given.value} of the role {given.role}: {rule.effect}")
            source = "database user" if given.is_of_database else "user"
            cures.append(rule.cure(source, quoted(given.role), database))
    if not texts:
        return ok(name, "no harmful PostgreSQL setting")
    return warn(name, "; ".join(texts), " ".join(cures))


async def check_clock(db: Database) -> HealthCheck:
    """This host's clock agrees with the database's, for people: jobs use the latter only."""
    name = "clock"
    server, took = await health.probe(db.dsn, db.settings.connect_timeout)
    skew = (server.now - datetime.now(UTC)).total_seconds() + took / 2
    text = f"the database is {abs(skew):.3f} s {'ahead of' if skew > 0 else 'behind'} this host"
    if abs(skew) > SKEW_S + took:
        return warn(name, text, "synchronise the clocks (NTP): log times disagree with job times")
    return ok(name, text)


async def check_speed(db: Database) -> HealthCheck:
    """Times that limit the rate of jobs; without load, and never a problem by themselves."""
    speed = await health.measure_commits(db.dsn, db.settings.connect_timeout)
    return ok("speed", commit_speed.describe(speed))


async def check_workers(db: Database) -> HealthCheck:
    """A live worker runs jobs."""
    found = await db.run(workers.listing())
    return judge_workers(found)


def judge_workers(found: Iterable[WorkerRow]) -> HealthCheck:
    """The finding about workers, live or not."""
    name = "workers"
    live = [worker for worker in found if worker.is_live]
    running = [worker for worker in live if worker.runs_jobs]
    if not running:
        return warn(name, "no worker is alive: no job runs", "laneway worker APP")
    silent = [worker for worker in running if worker.seen_s > SILENT_S]
    leader = next((worker.name for worker in live if worker.is_leader), None)
    leads = f"led by {leader}" if leader else "no leader yet"
    jobs = sum(worker.running for worker in running)
    running_jobs = f"{jobs} job{'' if jobs == 1 else 's'} running"
    text = f"{len(running) - len(silent)} alive, {leads}, {running_jobs}"
    if not silent:
        return ok(name, text)
    first = silent[0]
    return warn(
        name,
        f"{text}; no report for {first.seen_s:.0f} s from {visible(first.name)}{and_more(silent)}",
        f"if it was killed, `laneway worker APP`; it counts as dead after {DEAD_S:.0f} s",
    )


async def check_tokens(db: Database) -> HealthCheck:
    """No token that is in use expires soon."""
    name = "tokens"
    found = await db.run(access.list_expiring_tokens(TOKENS_SHOWN + 1))
    if not found:
        return ok(name, "no token in use expires soon")
    first = found[0]
    left = expiry_text(first.expiry.left_s)
    return warn(
        name,
        f"the token {visible(first.name)} ({first.hint}…) of {visible(first.principal)} {left}"
        f"{and_more(found, TOKENS_SHOWN)}",
        f"`laneway tokens create {quote(visible(first.principal))} --name"
        f" {quote(visible(first.name))}`, then replace it where it is used",
    )


async def check_leases(db: Database) -> HealthCheck:
    """No lease stays lapsed longer than a watchdog needs."""
    name = "leases"
    lapsed = await db.run(health.count_lapsed())
    if not lapsed.leases or lapsed.oldest_s is None:
        return ok(name, "no lapsed lease")
    one = "lease" if lapsed.leases == 1 else "leases"
    text = f"{lapsed.leases} {one} lapsed, the oldest {lapsed.oldest_s:.0f} s ago"
    if lapsed.oldest_s > LAPSED_S:
        return fail(name, f"{text}: no watchdog takes the jobs back", "laneway worker APP")
    if not lapsed.is_watched:
        return warn(
            name, f"{text}: a worker or server must run to take the jobs back", "laneway worker APP"
        )
    return ok(name, f"{text}; the watchdog takes the jobs back")


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
        return fail(name, f"{what}: {named[0]}{and_more(named)}", REVOKE_PUBLIC)
    if found.open_functions:
        named = found.open_functions
        return warn(name, f"PUBLIC may call {named[0]}{and_more(named)}", REVOKE_PUBLIC)
    if found.writers:
        named = found.writers
        return warn(
            name,
            f"the database role {named[0]}{and_more(named)} may write jobs directly, unchecked",
            "run `laneway db grants` again for each role, once all its programs are upgraded",
        )
    return ok(name, "no function is open to PUBLIC, no limited role writes jobs directly")


async def check_blockers(db: Database) -> HealthCheck:
    """No session blocks the tables of Laneway, or the rows that claims lock."""
    name = "blockers"
    found = await db.run(health.find_blockers())
    if not found:
        return ok(name, "no session holds locks that Laneway needs")
    text, step = (
        f"{found[0].describe()}{and_more(found)}",
        found[0].end_command,
    )
    if any(blocker.waiting for blocker in found):
        return fail(name, f"{text}: claims wait", step)
    return warn(name, text, step)


async def check_lost(db: Database) -> HealthCheck:
    """Every job is waiting, running or finished."""
    name = "jobs"
    found = await db.run(
        health.sample_lost(newest=NEWEST_SCANNED, places=PLACES, each=SCANNED_PER_PLACE)
    )
    most = NEWEST_SCANNED + PLACES * SCANNED_PER_PLACE
    looked_at = "" if found.is_whole else f" of {most:,} checked, the newest and a sample,"
    if not found.ids:
        return ok(name, f"every job{looked_at} has a state")
    text = f"{len(found.ids)} jobs{looked_at} have no state, the first is {found.ids[0]}"
    return fail(name, f"{text}: tables were truncated or restored in part", "laneway db repair")


async def check_snapshots(db: Database) -> HealthCheck:
    """No transaction of another program pins dead rows for long."""
    name = "snapshots"
    oldest = await db.run(health.oldest_snapshot())
    if oldest is None:
        return ok(name, "no long transaction keeps vacuum from removing dead rows")
    text = (
        f"pid {oldest.pid} ({oldest.application or 'no name'}, {oldest.user}) has kept a "
        f"transaction open for {oldest.age_s:.0f} s"
    )
    if oldest.age_s > OLD_SNAPSHOT_S:
        step = f"select pg_terminate_backend({oldest.pid});"
        return warn(name, f"{text}: vacuum cannot remove dead rows", step)
    return ok(name, text)
