"""Each check finds its problem and names the next step."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from laneway.config.settings import Settings
from laneway.control import access, health, job_type_health, schedules
from laneway.control.health import examine
from laneway.control.health_check import Finding, HealthCheck
from laneway.control.server_settings import harmful, in_units
from laneway.domain.schedule import ScheduleSettings
from laneway.errors import ConfigError, DatabaseUnavailable
from laneway.store import health as probes
from laneway.store import leases
from laneway.store.database import Database
from tests.api.conftest import People
from tests.support.job_factory import JobFactory
from tests.support.pgbouncer import pgbouncer

UNREACHABLE = "postgresql://someone:secret@127.0.0.1:1/nowhere"


async def all_checks(db: Database) -> dict[str, HealthCheck]:
    return {check.name: check async for check in examine(db)}


def database(dsn: str, **settings: Any) -> Database:
    return Database(dsn, Settings.load(database_url=dsn, **settings), role="tests health")


@pytest.fixture
async def behind(dsn: str, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    found = database(dsn, **getattr(request, "param", {}))
    yield found
    await found.close()


async def test_healthy_database_only_lacks_a_worker(db: Database, factory: JobFactory) -> None:
    found = await all_checks(db)
    assert list(found) == [
        "database", "blockers", "schema", "pooler", "listen", "settings", "clock", "speed",
        "workers", "leases", "jobs", "waits", "circles", "job types", "handlers", "hooks",
        "failures", "tokens", "remote tokens", "rights", "snapshots",
    ]  # fmt: skip
    worth = {name: check.finding for name, check in found.items()}
    assert worth.pop("workers") is Finding.WARN
    # Servers of tests need not be durable.
    worth.pop("settings")
    assert set(worth.values()) == {Finding.OK}
    factory.register()
    assert (await health.check_workers(db)).finding is Finding.OK


async def test_unreachable_database_ends_the_examination_without_the_password() -> None:
    db = database(UNREACHABLE, connect_timeout=2)
    found = [check async for check in examine(db)]
    assert [check.finding for check in found] == [Finding.FAIL]
    assert "secret" not in found[0].message
    assert "refused" in found[0].message


async def test_missing_schema_names_the_command(empty_dsn: str) -> None:
    db = database(empty_dsn)
    found = await all_checks(db)
    await db.close()
    assert found["schema"].finding is Finding.FAIL
    assert found["schema"].message == "no Laneway schema in this database"
    assert found["schema"].next == "laneway db migrate"
    assert "workers" not in found


async def test_doctor_reports_changed_or_newer_schema(db: Database, factory: JobFactory) -> None:
    factory.conn.execute(
        "insert into laneway.migrations (number, name, checksum, safe_with)"
        " values (9999, '9999_later', '', '0.0.1')"
    )
    newer = await health.check_schema(db)
    assert (newer.finding, "9999_later" in newer.message) == (Finding.WARN, True)
    factory.conn.execute("update laneway.migrations set checksum = 'x' where number = 1")
    assert (await health.check_schema(db)).finding is Finding.FAIL


@pytest.mark.parametrize("behind", [{"pooler": True}], indirect=True)
async def test_doctor_reports_pooler_setting_without_pooler(behind: Database) -> None:
    found = await health.check_pooler(behind)
    assert (found.finding, found.next is not None) == (Finding.WARN, True)
    assert "poll" in (await health.check_listen(behind)).message


async def test_settings_that_hurt_are_named_with_the_cure(dsn: str) -> None:
    plain = database(dsn)
    sound = await health.check_settings(plain)
    odd = database(f"{dsn}{'&' if '?' in dsn else '?'}options=-csynchronous_commit%3Doff")
    found = await health.check_settings(odd)
    for made in (plain, odd):
        await made.close()
    assert "synchronous_commit" not in sound.message
    assert found.finding is Finding.WARN
    assert "synchronous_commit = off: a crash of the server may lose" in found.message
    assert "remove synchronous_commit from LANEWAY_DATABASE_URL" in (found.next or "")


@pytest.mark.parametrize(
    "place, cure",
    [
        ("database {database}", "alter database {database} set synchronous_commit = on;"),
        ("role {role}", "alter role {role} set synchronous_commit = on;"),
        (
            "role {role} in database {database}",
            "alter role {role} in database {database} set synchronous_commit = on;",
        ),
    ],
)
async def test_cure_of_a_setting_changes_it_where_it_was_set(
    dsn: str, factory: JobFactory, place: str, cure: str
) -> None:
    role = f"test_{uuid4().hex}"
    names = {"role": f'"{role}"', "database": f'"{urlsplit(dsn).path[1:]}"'}
    factory.conn.execute(f"create role {names['role']} login superuser password '{role}'".encode())
    factory.conn.execute(f"alter {place.format(**names)} set synchronous_commit = off".encode())
    own = database(f"{dsn}{'&' if '?' in dsn else '?'}user={role}&password={role}")
    try:
        assert cure.format(**names) in ((await health.check_settings(own)).next or "")
    finally:
        await own.close()
        factory.conn.execute(f"drop role {names['role']}".encode())


@pytest.mark.parametrize(
    "name, written", [("transaction_timeout", "2s"), ("synchronous_commit", "FALSE")]
)
def test_setting_of_a_role_is_read_in_the_units_of_the_server(name: str, written: str) -> None:
    assert harmful({name: in_units(written)}, is_pooled=False)


async def test_settings_of_every_role_with_grants_are_checked(
    db: Database, factory: JobFactory
) -> None:
    granted, other = f"test_{uuid4().hex}", f"test_{uuid4().hex}"
    for role in (granted, other):
        factory.conn.execute(f"create role {role} login".encode())
        factory.conn.execute(f"alter role {role} set synchronous_commit = false".encode())
    factory.conn.execute(f"grant usage on schema laneway to {granted}".encode())
    try:
        found = await health.check_settings(db)
    finally:
        factory.conn.execute(f"drop owned by {granted}".encode())
        factory.conn.execute(f"drop role {granted}, {other}".encode())
    assert f"synchronous_commit = false of the role {granted}: a crash" in found.message
    assert f'alter role "{granted}" set synchronous_commit = on;' in (found.next or "")
    assert other not in found.message


@pytest.mark.parametrize(
    "source, cure",
    [
        (
            "configuration file",
            "alter system set synchronous_commit = on; select pg_reload_conf();",
        ),
        ("command line", "start PostgreSQL without synchronous_commit on its command line."),
    ],
)
def test_cure_of_a_setting_of_the_server_is_for_all_roles(source: str, cure: str) -> None:
    (rule,) = harmful({"synchronous_commit": "off"}, is_pooled=False)
    assert rule.cure(source, '"ann"', '"jobs"') == cure


@pytest.mark.parametrize(
    "settings, is_pooled, named",
    [
        ({"fsync": "off", "autovacuum": "on"}, False, ["fsync"]),
        ({"autovacuum": "off", "log_statement": "all"}, False, ["autovacuum", "log_statement"]),
        ({"lock_timeout": "10", "statement_timeout": "100"}, False, []),
        ({"lock_timeout": "10", "statement_timeout": "0"}, True, ["lock_timeout"]),
        ({"transaction_timeout": "1000"}, False, ["transaction_timeout"]),
        ({"jit_above_cost": "0"}, True, ["jit_above_cost"]),
        ({"jit_above_cost": "-1", "search_path": '"$user", public'}, True, []),
        ({"search_path": "odd, pg_catalog"}, True, ["search_path"]),
        ({"default_transaction_isolation": "serializable"}, True,
         ["default_transaction_isolation"]),
    ],
)  # fmt: skip
def test_setting_hurts_only_where_it_reaches_our_sessions(
    settings: dict[str, str], is_pooled: bool, named: list[str]
) -> None:
    assert [rule.name for rule in harmful(settings, is_pooled=is_pooled)] == named


async def test_doctor_warns_of_killed_worker_before_it_counts_as_dead(
    db: Database, factory: JobFactory
) -> None:
    factory.register()
    factory.running()
    found = await health.check_workers(db)
    assert (found.finding, found.message) == (Finding.OK, "1 alive, no leader yet, 1 job running")
    factory.conn.execute("update laneway.workers set seen_at = clock_timestamp() - interval '23 s'")
    found = await health.check_workers(db)
    assert found.finding is Finding.WARN
    assert re.search(r"^0 alive, .*; no report for 2\d s from host:1$", found.message)
    assert "`laneway worker APP`" in str(found.next)


async def test_doctor_reports_unreclaimed_lapsed_leases(db: Database, factory: JobFactory) -> None:
    factory.running()
    factory.conn.execute(
        "update laneway.lease set lease_until = clock_timestamp() - interval '9 s'"
    )
    found = await health.check_leases(db)
    assert (found.finding, found.next) == (Finding.WARN, "laneway worker APP")
    assert "1 lease lapsed" in found.message
    assert "a worker or server must run to take the jobs back" in found.message
    factory.register()
    assert (await health.check_leases(db)).finding is Finding.OK
    factory.conn.execute(
        "update laneway.lease set lease_until = clock_timestamp() - interval '1 h'"
    )
    found = await health.check_leases(db)
    assert (found.finding, found.next) == (Finding.FAIL, "laneway worker APP")
    factory.run(leases.run_watchdog(factory.worker_id, 10.0))
    assert (await health.check_leases(db)).message == "no lapsed lease"


async def test_transaction_that_pins_dead_rows_is_named(
    db: Database, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(dsn, application_name="reporting") as other:
        other.execute("set transaction isolation level repeatable read")
        other.execute("select 1")
        monkeypatch.setattr(health, "OLD_SNAPSHOT_S", 0.0)
        found = await health.check_snapshots(db)
        pid = other.info.backend_pid
    assert found.finding is Finding.WARN
    assert "reporting" in found.message
    assert found.next == f"select pg_terminate_backend({pid});"


async def test_doctor_reports_clock_difference(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "SKEW_S", -10.0)
    assert (await health.check_clock(db)).finding is Finding.WARN


async def test_reaching_fails_at_once_and_in_the_servers_words() -> None:
    with pytest.raises(DatabaseUnavailable, match="refused"):
        await probes.check_reachable(UNREACHABLE, Settings.load())


@pytest.mark.parametrize("dsn", ["host=x password=my secret", "postgresql://u:p w@[h/d"])
async def test_dsn_that_cannot_be_read_is_not_repeated(dsn: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await probes.check_reachable(dsn, Settings.load())
    assert "secret" not in str(caught.value)
    assert "p w" not in str(caught.value)


def test_libpq_programs_get_the_dsn_by_their_environment() -> None:
    assert probes.libpq_environment("postgresql://u:p%40w@h:5433/d?sslmode=require") == {
        "PGUSER": "u",
        "PGPASSWORD": "p@w",
        "PGHOST": "h",
        "PGPORT": "5433",
        "PGDATABASE": "d",
        "PGSSLMODE": "require",
    }


# -- a real transaction pooler ----------------------------------------------------------------


@pytest.fixture
def pooled_dsn(dsn: str) -> Iterator[str]:
    with pgbouncer(dsn) as pooled:
        yield pooled


@pytest.mark.pooler
async def test_pooler_that_is_denied_is_seen_and_the_setting_named(pooled_dsn: str) -> None:
    db = database(pooled_dsn, pooler=False)
    found = await all_checks(db)
    await db.close()
    assert (found["pooler"].finding, found["pooler"].next) == (
        Finding.FAIL,
        "LANEWAY_POOLER=true",
    )


@pytest.mark.pooler
async def test_pooler_that_is_found_out_passes_every_check(pooled_dsn: str) -> None:
    db = database(pooled_dsn)
    found = await all_checks(db)
    await db.close()
    assert found["pooler"].finding is Finding.OK
    assert "detected" in found["pooler"].message
    assert "poll" in found["listen"].message


@pytest.mark.pooler
async def test_configured_pooler_passes_every_check(pooled_dsn: str) -> None:
    db = database(pooled_dsn, pooler=True)
    found = await all_checks(db)
    await db.close()
    assert {check.finding for check in found.values()} == {Finding.OK, Finding.WARN}
    assert found["pooler"].finding is Finding.OK


@pytest.mark.pooler
async def test_session_pooler_is_named(dsn: str) -> None:
    with pgbouncer(dsn, pool_mode="session") as pooled:
        db = database(pooled)
        found = await health.check_pooler(db)
        await db.close()
    assert (found.finding, "a session pooler" in found.message) == (Finding.OK, True)


@pytest.mark.pooler
async def test_doctor_reports_notifications_lost_in_pooler(
    pooled_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "PROBE_S", 0.2)
    assert not await probes.receives_notifications(pooled_dsn, 5)


async def test_doctor_suggests_the_nearest_published_type(
    db: Database, factory: JobFactory
) -> None:
    factory.publish("ingest")
    factory.submit("ingst")
    found = await job_type_health.check_handlers(db)
    assert found.message.endswith(" s; did you mean ingest?")


async def test_doctor_reports_jobs_without_handler(db: Database, factory: JobFactory) -> None:
    factory.register()
    factory.submit()
    assert (await job_type_health.check_handlers(db)).finding is Finding.OK
    for job_type in ("orphan", "stray"):
        factory.submit(job_type)
    factory.conn.execute(
        "update laneway.jobs set created_at = now() - interval '11 minutes', run_at = null"
    )
    found = await job_type_health.check_handlers(db)
    assert found.finding is Finding.WARN
    beginning = "no live worker handles orphan in the lane default; its first job has waited 66"
    assert found.message.startswith(beginning)
    assert found.message.endswith(" s, and 1 more: stray")
    assert found.next is not None
    assert "laneway jobs ls --status queued --type orphan" in found.next
    factory.worker_id = uuid4()
    factory.register(job_types=("orphan", "stray"), serves=("interactive",))
    assert (await job_type_health.check_handlers(db)).finding is Finding.WARN
    factory.worker_id = uuid4()
    factory.register(job_types=("orphan", "stray"), serves=("interactive", "default"))
    assert (await job_type_health.check_handlers(db)).finding is Finding.OK


async def test_failures_of_the_last_hour_are_named(db: Database, factory: JobFactory) -> None:
    assert (await job_type_health.check_failures(db)).finding is Finding.OK
    old, new = factory.failed("old"), factory.failed("bad")
    factory.conn.execute(
        "update laneway.outcome o set finished_at = clock_timestamp() - interval '61 minutes'"
        " from laneway.jobs j where j.seq = o.seq and j.id = %s",
        [old],
    )
    found = await job_type_health.check_failures(db)
    assert found.finding is Finding.WARN
    assert found.message == "jobs failed within the last hour: 1 of bad (ValueError)"
    assert f"laneway jobs show {new}" in (found.next or "")
    # A job that was submitted before that hour failed in it too.
    assert "`laneway jobs retry --type bad --status failed`" in (found.next or "")


async def test_scheduled_type_without_worker_is_named(db: Database, factory: JobFactory) -> None:
    factory.register(("served",))
    for name, job_type in (("fine", "served"), ("nightly", "report")):
        settings: ScheduleSettings = {"job_type": job_type, "cron": "0 3 * * *"}
        await schedules.put(db, name, settings, by="ann")
    found = await job_type_health.check_handlers(db)
    assert found.finding is Finding.WARN
    assert "no live worker handles report, which the schedule nightly submits" in found.message
    assert "laneway schedules disable nightly" in (found.next or "")
    await schedules.put(db, "nightly", {"enabled": False}, by="ann")
    assert (await job_type_health.check_handlers(db)).finding is Finding.OK


@pytest.mark.parametrize(
    "name, value",
    [
        ("max_connections", "10"),
        ("shared_buffers", "128"),
        ("idle_session_timeout", "5000"),
    ],
)
def test_setting_that_hurts_has_a_cure(name: str, value: str) -> None:
    (rule,) = harmful({name: value}, is_pooled=True)
    cure = rule.cure("configuration file", '"ann"', '"jobs"')
    assert cure.startswith(f"alter system set {name} = ")


async def test_token_in_use_that_expires_soon_is_named(db: Database, factory: JobFactory) -> None:
    people = People(factory.conn)
    ann = people.new("ann", "viewer")
    people.expire(ann.token, days=5.5)
    assert (await health.check_tokens(db)).finding is Finding.OK
    await access.authenticate(db, ann.token)
    found = await health.check_tokens(db)
    assert found.finding is Finding.WARN
    assert found.message == f"the token test ({ann.token[:6]}…) of ann expires in 5 days"
    assert found.next is not None
    assert found.next.startswith("`laneway tokens create ann --name test`")
