"""A worker needs no more than the rights of the database role `worker`."""

from __future__ import annotations

import logging
import os
import re
import signal
import time
from collections.abc import Iterator
from functools import partial
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from laneway import Analysis, Context, Laneway
from laneway.engine.process import start_retry
from laneway.engine.process.start_retry import StartRetry
from laneway.errors import (
    DatabaseUnavailable,
    InvalidInput,
    LoginRefused,
    MissingRight,
    SchemaMismatch,
    UnsuitableDatabase,
)
from laneway.store.driver_errors import translated
from laneway.store.grants import grants
from laneway.store.missing_rights import refuse_missing_rights
from tests.support.worker_command import WorkerCommand
from tests.support.worker_harness import QUICK, WorkerHarness, wait_until

WORKER = "laneway worker"


@pytest.fixture
def limited_dsn(harness: WorkerHarness) -> Iterator[str]:
    """The database as a role that has been granted what workers and handlers need."""
    role = f"limited_{uuid4().hex}"
    harness.do(f"create role {role} nologin")
    harness.do(grants(("worker", "client"), role, "unused"))
    yield make_conninfo(harness.dsn, options=f"-c role={role}")
    harness.do(f"drop owned by {role}")
    harness.do(f"drop role {role}")


async def test_worker_of_limited_role_starts_with_any_declarations(
    harness: WorkerHarness, limited_dsn: str
) -> None:
    lw = Laneway(limited_dsn, **QUICK)

    @lw.handler("careful", lane="new_lane", limits=["new_limit"], approval=True)
    async def careful(ctx: Context, page: int) -> int:
        await ctx.progress(1, 1, "half")
        await ctx.save({"page": page})
        return await ctx.step("read", lambda: page)

    @careful.analyze
    async def analyze(page: int) -> Analysis:
        return Analysis(plan="cheap")

    @lw.schedule("nightly", cron="0 3 * * *")
    @lw.handler("plain")
    async def plain(ctx: Context) -> str:
        async with ctx.limit("new_limit"):
            return "done"

    await harness.start_worker(lw)
    job = await lw.submit("plain")
    assert await job.wait(60) == "done"
    waiting = await lw.submit("careful", {"page": 3})
    await wait_until(lambda: harness.one("select count(*) from laneway.awaiting") == 1)
    await harness.lw.approve(waiting.id, by="ann")
    assert await waiting.wait(60) == 3
    assert harness.rows("select name from laneway.schedules") == [("nightly",)]
    await wait_until(lambda: harness.one("select next_at is not null from laneway.schedule_state"))
    await lw.close()


async def test_role_that_may_not_create_a_limit_reads_the_command(harness: WorkerHarness) -> None:
    role = f"limited_{uuid4().hex}"
    harness.do(f"create role {role} nologin")
    harness.do(grants(("client",), role, "unused"))
    async with Laneway(make_conninfo(harness.dsn, options=f"-c role={role}"), **QUICK) as lw:
        async with lw.limit("openai"):
            pass
        with pytest.raises(InvalidInput, match="unheard does not exist; create it with `laneway"):
            async with lw.limit("unheard"):
                pytest.fail("the limit does not exist")
        harness.do("insert into laneway.limits (name) values ('unheard')")
        async with lw.limit("unheard"):
            pass
    harness.do(f"drop owned by {role}")
    harness.do(f"drop role {role}")


def role_of(dsn: str) -> str:
    return dsn.partition("role=")[2].strip("'")


@pytest.mark.parametrize(
    "lost, named",
    [
        ("execute on function laneway.claim", "execute on function laneway.claim"),
        ("delete on laneway.workers", "delete on laneway.workers"),
        ("select on laneway.migrations", "select on laneway.migrations"),
        ("usage on schema laneway", "usage on schema laneway"),
    ],
)
async def test_worker_that_lacks_a_right_ends_at_start_and_names_it(
    harness: WorkerHarness, limited_dsn: str, lost: str, named: str
) -> None:
    role = role_of(limited_dsn)
    harness.do(f"revoke {lost} from {role}")
    lw = Laneway(limited_dsn, **QUICK)
    with pytest.raises(MissingRight) as refused:
        await lw.worker().start()
    assert f"{role} lacks rights that a worker needs: {named}" in str(refused.value)
    assert f"laneway db grants --role client --role worker --to {role}" in refused.value.cure
    await lw.close()


async def test_refused_replacement_leaves_the_other_children_at_work(
    harness: WorkerHarness, limited_dsn: str
) -> None:
    role = role_of(limited_dsn)
    with WorkerCommand(limited_dsn, "--processes=2") as command:
        job = await harness.lw.submit("wait")
        await wait_until(lambda: harness.one("select count(*) from laneway.workers") == 2)
        await harness.running(job)
        busy = harness.one(
            "select w.pid from laneway.lease l join laneway.workers w on w.id = l.worker_id"
        )
        first = {child.pid for child in command.of(WORKER)}
        harness.do(f"revoke delete on laneway.limit_starts from {role}")
        (idle,) = first - {busy}
        os.kill(idle, signal.SIGKILL)
        (refused,) = await wait_until(lambda: {child.pid for child in command.of(WORKER)} - first)
        await wait_until(lambda: refused not in {child.pid for child in command.of(WORKER)})
        harness.do(f"grant delete on laneway.limit_starts to {role}")
        await wait_until(
            lambda: (
                command.process.poll() is not None
                or harness.one(
                    "select count(*) from laneway.workers where pid <> all(%s)", [*first]
                )
            )
        )
        assert command.process.poll() is None
        assert (await job.get()).attempt == 1
        assert harness.status(job) == "running"
        await wait_until(command.terminate_again)


async def run_plain_job(harness: WorkerHarness, dsn: str) -> None:
    lw = Laneway(dsn, **QUICK)

    @lw.handler("plain")
    async def plain(ctx: Context) -> str:
        return "done"

    await harness.start_worker(lw)
    assert await (await lw.submit("plain")).wait(60) == "done"
    await lw.close()


async def test_worker_needs_no_right_that_only_the_version_before_needs(
    harness: WorkerHarness, limited_dsn: str
) -> None:
    harness.do(f"revoke all on laneway.slot_usage from {role_of(limited_dsn)}")
    await run_plain_job(harness, limited_dsn)


async def test_worker_that_loses_a_right_names_it_and_recovers_with_it(
    harness: WorkerHarness, limited_dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    lw = Laneway(limited_dsn, **QUICK)
    role = role_of(limited_dsn)

    @lw.handler("plain")
    async def plain(ctx: Context) -> str:
        harness.do(f"revoke execute on function laneway.save_step, laneway.settle from {role}")
        return await ctx.step("read", lambda: "done")

    await harness.start_worker(lw)
    job = await lw.submit("plain")
    await wait_until(lambda: "permission denied for function save_step" in caplog.text)
    assert "`laneway db grants --role client --role worker --to " in caplog.text
    harness.do(f"grant execute on function laneway.save_step to {role}")
    await wait_until(lambda: "permission denied for function settle" in caplog.text)
    harness.do(f"grant execute on function laneway.settle to {role}")
    assert await job.wait(60) == "done"
    assert (await job.get()).attempt == 1
    await lw.close()


@pytest.mark.parametrize(
    "wrong", [{"password": "wrong"}, {"user": "nobody_here"}, {"dbname": "nowhere"}]
)
async def test_worker_whose_login_is_refused_ends_after_five_tries(
    dsn: str,
    wrong: dict[str, str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(start_retry, "FIRST_PAUSE_S", 0.01)
    lw = Laneway(make_conninfo(dsn, **wrong), **QUICK)
    with pytest.raises(LoginRefused, match="LANEWAY_DATABASE_URL"):
        await lw.worker().start()
    await lw.close()
    tries = [r.getMessage()[-12:] for r in caplog.records if "(try " in r.getMessage()]
    assert tries == [f"(try {n} of 5)" for n in range(1, 5)]


async def test_worker_starts_once_its_refused_login_is_created(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(start_retry, "FIRST_PAUSE_S", 0.01)
    role = f"late_{uuid4().hex}"

    class Creates(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "(try 2 of 5)" in record.getMessage():
                harness.do(f"create role {role} superuser login password 'x'")

    creates = Creates()
    logging.getLogger("laneway").addHandler(creates)
    lw = Laneway(make_conninfo(harness.dsn, user=role, password="x"), **QUICK)
    try:
        await harness.start_worker(lw)
        assert "(try 2 of 5)" in caplog.text
        assert "(try 3 of 5)" not in caplog.text
    finally:
        logging.getLogger("laneway").removeHandler(creates)
        for worker in harness.workers:
            await worker.stop(0.0)
        await lw.close()
        harness.do(f"drop owned by {role}; drop role {role}")


def test_server_that_is_away_is_waited_for_without_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    retry = StartRetry("is it right?")
    away = DatabaseUnavailable("connection refused")
    pauses = []
    for _ in range(100):
        pauses.append(retry.pause_s(away))
        now += pauses[-1]
    assert pauses[:5] == [0.2, 0.4, 0.8, 1.6, 2.0]
    assert set(pauses[5:]) == {2.0}
    # One line in ten seconds.
    assert 15 <= len(caplog.records) <= 20
    assert caplog.records[0].getMessage() == (
        "start: connection refused (is it right? trying again)"
    )


def test_only_refusals_in_a_row_count_as_tries() -> None:
    retry = StartRetry("is it right?")
    away, refused = DatabaseUnavailable("away"), LoginRefused("no", "check it")
    for _ in range(4):
        retry.pause_s(refused)
    retry.pause_s(away)
    for _ in range(4):
        retry.pause_s(refused)
    with pytest.raises(LoginRefused):
        retry.pause_s(refused)


def test_database_that_no_retry_can_help_is_not_tried_again() -> None:
    retry = StartRetry("is it right?")
    for error in (SchemaMismatch("old"), UnsuitableDatabase("read-only", "change it")):
        with pytest.raises(type(error)):
            retry.pause_s(error)


async def test_refused_login_is_retried_while_another_host_is_not_resolved(dsn: str) -> None:
    host = conninfo_to_dict(dsn)["host"]
    wrong = make_conninfo(dsn, user="nobody_here", host=f"missing.invalid,{host}")
    lw = Laneway(wrong, **QUICK)
    with pytest.raises(DatabaseUnavailable) as refused:
        await lw.submit("plain")
    assert not isinstance(refused.value, UnsuitableDatabase)
    await lw.close()


async def test_login_that_every_host_refuses_is_not_retried(dsn: str) -> None:
    given = conninfo_to_dict(dsn)
    host, port = str(given["host"]), given["port"]
    # The same server by another name.
    other = f"{host}/." if host.startswith("/") else "localhost"
    wrong = make_conninfo(dsn, user="nobody_here", host=f"{host},{other}", port=f"{port},{port}")
    lw = Laneway(wrong, **QUICK)
    with pytest.raises(UnsuitableDatabase):
        await lw.submit("plain")
    await lw.close()


async def test_worker_may_hold_rights_on_columns_instead_of_tables(
    harness: WorkerHarness, limited_dsn: str
) -> None:
    role = role_of(limited_dsn)
    columns = harness.one(
        "select string_agg(quote_ident(attname), ', ') from pg_attribute"
        " where attrelid = 'laneway.job_types'::regclass and attnum > 0 and not attisdropped"
    )
    harness.do(f"revoke insert, update on laneway.job_types from {role}")
    harness.do(f"grant insert ({columns}), update ({columns}) on laneway.job_types to {role}")
    await run_plain_job(harness, limited_dsn)


async def test_workspace_that_row_level_security_refuses_keeps_its_reason(
    harness: WorkerHarness, limited_dsn: str
) -> None:
    role = role_of(limited_dsn)
    harness.do("alter table laneway.jobs enable row level security")
    harness.do("create policy everyone on laneway.jobs using (true) with check (true)")
    harness.do(
        f"create policy mine on laneway.jobs as restrictive to {role}"
        " using (true) with check (workspace = 'mine')"
    )
    harness.do(f"grant select, insert on laneway.jobs to {role}")
    with (
        psycopg.connect(limited_dsn) as conn,
        pytest.raises(UnsuitableDatabase, match="violates row-level security") as refused,
        translated(),
    ):
        conn.execute(
            "insert into laneway.jobs (id, job_type, payload)"
            " values (gen_random_uuid(), 'plain', '{}')"
        )
    assert not isinstance(refused.value, MissingRight)
    assert "db grants" not in str(refused.value)


async def test_handler_that_may_not_submit_names_the_whole_command(
    harness: WorkerHarness, limited_dsn: str
) -> None:
    role = role_of(limited_dsn)
    harness.do(f"revoke execute on all functions in schema laneway from {role}")
    lw = Laneway(limited_dsn, **QUICK)
    with pytest.raises(MissingRight) as refused:
        await lw.submit("plain")
    await lw.close()
    assert "`laneway db grants --role client --role worker --to " in str(refused.value)


@pytest.mark.parametrize("has", [("client",), ("client", "handler"), ("reader",), ("worker",)])
async def test_pasted_grants_never_revoke_what_a_login_has(
    harness: WorkerHarness, limited_dsn: str, has: tuple[str, ...]
) -> None:
    role = role_of(limited_dsn)
    harness.do(grants(has, role, "unused"))
    lw = Laneway(limited_dsn, **QUICK)
    ask = partial(lw.submit, "plain") if "reader" in has else lw.jobs.list
    with pytest.raises(MissingRight) as refused:
        await ask()
    command = refused.value.cure.split("`")[1]
    assert command.endswith(f" --to {role}")
    roles = re.findall(r"--role (\w+)", command)
    assert set(roles) == {*has, "client" if "reader" in has else "reader"}
    harness.do(grants(roles, role, "unused"))
    await ask()
    await lw.close()
    with psycopg.connect(limited_dsn) as conn:
        for one in has:
            refuse_missing_rights(conn, one)


async def test_change_of_a_lane_names_the_role_server(
    harness: WorkerHarness, limited_dsn: str
) -> None:
    role = role_of(limited_dsn)
    harness.do(grants(("client",), role, "unused"))
    lw = Laneway(limited_dsn, **QUICK)
    with pytest.raises(MissingRight) as refused:
        await lw.lanes.drain("default")
    await lw.close()
    assert f"`laneway db grants --role server --to {role}`" in str(refused.value)


async def test_wait_of_a_role_that_may_not_read_jobs_is_refused_at_once(
    harness: WorkerHarness, limited_dsn: str
) -> None:
    job = await harness.lw.submit("plain")
    harness.do(f"revoke select on laneway.jobs from {role_of(limited_dsn)}")
    lw = Laneway(limited_dsn, **QUICK)
    with pytest.raises(MissingRight, match="permission denied for table jobs"):
        await lw.wait(job.id)
    await lw.close()
