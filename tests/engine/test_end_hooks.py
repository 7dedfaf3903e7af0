"""End hooks of an application: declared, published, run, and kept through crashes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from laneway import Context, EndedJob, Laneway, PublicError, SyncContext
from laneway.control import job_type_health
from laneway.control import webhooks as control_webhooks
from laneway.control.health_check import Finding
from laneway.embedded.postgres import EmbeddedPostgres
from laneway.engine import registrar
from laneway.errors import ConfigError, DatabaseUnavailable
from laneway.store.migrate import migrate
from tests.support.worker_command import WorkerCommand
from tests.support.worker_harness import QUICK, WorkerHarness, wait_until

APP = "tests.engine.hook_handlers:lw"
HOOKS = "select name, application, job_types, statuses, workspaces from laneway.end_hooks"


# -- declaring ---------------------------------------------------------------------------------


def declare(lw: Laneway, **options: Any) -> None:
    @lw.on_end("ingest", **options)
    async def tell(ctx: Context, job: EndedJob) -> None: ...


def _without_parentheses(lw: Laneway) -> None:
    @lw.on_end  # type: ignore[arg-type]
    async def tell(ctx: Context, job: EndedJob) -> None: ...


def _without_job(lw: Laneway) -> None:
    @lw.on_end("ingest")
    async def tell(ctx: Context, path: str) -> None: ...


def _with_more(lw: Laneway) -> None:
    @lw.on_end("ingest")
    async def tell(ctx: Context, job: EndedJob, channel: str) -> None: ...


def _with_number(lw: Laneway) -> None:
    @lw.on_end("ingest")
    async def tell(ctx: Context, job: int) -> None: ...


def _with_optional_text(lw: Laneway) -> None:
    @lw.on_end("ingest")
    async def tell(ctx: Context, job: str | None) -> None: ...


REFUSED: dict[str, tuple[Callable[[Laneway], None], str]] = {
    "no parentheses": (_without_parentheses, r'@lw.on_end needs parentheses: write @lw.on_end\("'),
    "no job": (_without_job, r"write def tell\(ctx, job: EndedJob\)"),
    "more arguments": (_with_more, r"write def tell\(ctx, job: EndedJob\)"),
    "number": (_with_number, r"write def tell\(ctx, job: EndedJob\)"),
    "optional text": (_with_optional_text, r"write def tell\(ctx, job: EndedJob\)"),
    "unknown status": (
        lambda lw: declare(lw, status=["fialed"]),
        "status: 'fialed' is not an end of a job; did you mean failed",
    ),
    "status of a live job": (lambda lw: declare(lw, status="running"), "is not an end of a job"),
    "no status": (lambda lw: declare(lw, status=[]), "status: must name one of"),
    "its own type": (lambda lw: declare(lw, name="ingest"), "ingest is the hook's own job type"),
    "unique": (lambda lw: declare(lw, unique_for=60), "unique_for: is not an option of an end"),
    "unknown option": (lambda lw: declare(lw, retries=2), "retries: is not an option"),
    "workspace": (lambda lw: declare(lw, workspace=""), "workspace: must not be empty"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_wrong_declaration_is_refused_with_place_and_cure(mistake: str) -> None:
    make, message = REFUSED[mistake]
    lw = Laneway("postgresql://nowhere")
    with pytest.raises(ConfigError, match=message) as refused:
        make(lw)
    assert "test_end_hooks.py:" in str(refused.value)
    assert not lw.handlers.end_hooks


# -- running -----------------------------------------------------------------------------------


async def test_hook_runs_with_the_ended_job(harness: WorkerHarness) -> None:
    seen: list[EndedJob] = []

    @harness.lw.handler("ingest", max_retries=0)
    async def ingest(ctx: Context, path: str) -> None:
        raise PublicError(f"{path} is empty")

    @harness.lw.on_end(ingest, status="failed", lane="alerts")
    async def tell(ctx: Context, job: EndedJob) -> None:
        seen.append(job)

    await harness.start_worker()
    job = await harness.lw.submit("ingest", {"path": "a.pdf"}, tags=["night"])
    await harness.ended(job)
    (ended,) = await wait_until(lambda: seen)
    assert (ended.id, ended.job_type, ended.status) == (job.id, "ingest", "failed")
    assert (ended.payload, ended.tags, ended.attempt) == ({"path": "a.pdf"}, ("night",), 1)
    assert ended.error is not None
    assert (ended.error.type, ended.error.message) == ("PublicError", "a.pdf is empty")
    assert ended.created_at < ended.finished_at
    assert harness.one("select laneway.lane_of('on_end.tell')") == "alerts"


async def test_plain_hook_gets_a_dict_and_may_have_another_name(harness: WorkerHarness) -> None:
    seen: list[dict[str, Any]] = []

    @harness.lw.handler("ingest")
    async def ingest(ctx: Context) -> int:
        return 7

    @harness.lw.on_end("ingest", name="audit.trail")
    def note(ctx: SyncContext, job: dict[str, Any]) -> None:
        seen.append(job)

    await harness.start_worker()
    await harness.lw.submit("ingest")
    await wait_until(lambda: seen)
    assert (seen[0]["result"], seen[0]["status"]) == (7, "completed")
    await wait_until(lambda: harness.count("completed") == 2)
    assert harness.rows("select job_type from laneway.outcome order by seq") == [
        ("ingest",), ("audit.trail",),
    ]  # fmt: skip


async def test_hook_without_a_hint_gets_an_ended_job(harness: WorkerHarness) -> None:
    seen: list[object] = []

    @harness.lw.handler("ingest")
    async def ingest(ctx: Context) -> int:
        return 7

    @harness.lw.on_end("ingest")
    async def tell(ctx, job):  # type: ignore[no-untyped-def]
        seen.append(job)

    @harness.lw.on_end("ingest")
    async def tell_any(ctx: Context, job: Any) -> None:
        seen.append(job["status"])

    await harness.start_worker()
    await harness.lw.submit("ingest")
    await wait_until(lambda: len(seen) == 2)
    (ended,) = [one for one in seen if isinstance(one, EndedJob)]
    assert (ended.result, "completed" in seen) == (7, True)


async def test_hook_with_a_field_of_a_later_version_runs(harness: WorkerHarness) -> None:
    seen: list[EndedJob] = []

    @harness.lw.on_end("ingest")
    async def tell(ctx: Context, job: EndedJob) -> None:
        seen.append(job)

    harness.do(
        "create or replace function laneway.later(jsonb) returns jsonb language sql as"
        ' $$ select $1 || \'{"color": "red"}\' $$'
    )
    text = harness.one("select pg_get_functiondef('laneway.submit_end_hooks'::regproc)")
    later = text.replace("laneway.ended_job(m.seq)", "laneway.later(laneway.ended_job(m.seq))")
    assert later != text
    harness.do(later)
    await harness.start_worker()
    await (await harness.lw.submit("ingest")).cancel()
    await wait_until(lambda: seen)


# -- publishing --------------------------------------------------------------------------------


async def test_worker_publishes_hooks_and_deletes_those_that_are_gone(
    harness: WorkerHarness,
) -> None:
    old, new = (Laneway(harness.dsn, application="shop", **QUICK) for _ in range(2))
    declare(old, status="failed", workspace="north")

    @new.handler("ingest")
    async def ingest(ctx: Context) -> None: ...

    async with old, new:
        worker = await harness.start_worker(old)
        row = ("on_end.tell", "shop", ["ingest"], ["failed"], ["north"])
        assert harness.rows(HOOKS) == [row]
        await worker.stop()
        await harness.start_worker(new)
        assert harness.rows(HOOKS) == []


async def test_hook_of_replaced_worker_is_deleted_once_that_has_ended(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.engine.registrar.REPLACED_S", 0.0)
    monkeypatch.setattr("laneway.engine.registrar.SEE_S", 0.0)
    monkeypatch.setattr("laneway.engine.registrar.TOUCH_S", 0.05)
    old, new = (Laneway(harness.dsn, application="shop", **QUICK) for _ in range(2))
    declare(old)

    @new.handler("ingest")
    async def ingest(ctx: Context) -> None: ...

    async with old, new:
        worker = await harness.start_worker(old)
        await harness.start_worker(new)
        assert len(harness.rows(HOOKS)) == 1
        await worker.stop()
        await wait_until(lambda: harness.rows(HOOKS) == [])


async def test_two_applications_with_one_hook_are_named(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    shop = Laneway(harness.dsn, application="shop", **QUICK)
    bills = Laneway(harness.dsn, application="bills", **QUICK)
    declare(shop, status="failed")
    declare(bills, status="completed")
    async with shop, bills:
        await harness.start_worker(shop)
        assert "was published by" not in caplog.text
        await harness.start_worker(bills)
    assert "end hook on_end.tell was published by shop with other job types" in caplog.text
    assert harness.rows(HOOKS)[0][1:4] == ("bills", ["ingest"], ["completed"])


async def test_hook_of_a_mistyped_job_type_is_warned_of(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("ingest")
    async def ingest(ctx: Context) -> None: ...

    @harness.lw.on_end("ingest", "ingst", "laneway.webhook")
    async def tell(ctx: Context, job: EndedJob) -> None: ...

    @harness.lw.on_end("on_end.tell", "elsewhere")
    async def watch(ctx: Context, job: EndedJob) -> None: ...

    await harness.start_worker()
    warned = [
        each.getMessage() for each in caplog.records
        if "no worker has published" in each.getMessage()
    ]  # fmt: skip
    assert warned == [
        "end hook on_end.tell: no worker has published the job type ingst; did you mean ingest?",
        "end hook on_end.watch: no worker has published the job type elsewhere",
    ]


async def test_warning_of_mistyped_job_types_ends_nothing(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise DatabaseUnavailable("the connection was lost")

    monkeypatch.setattr(registrar, "warn_of_unknown_types", fail)
    monkeypatch.setattr(control_webhooks, "find_unpublished", fail)

    @harness.lw.on_end("ingst")
    async def tell(ctx: Context, job: EndedJob) -> None: ...

    await harness.start_worker()
    saved = await control_webhooks.create(
        harness.lw.database,
        "erp",
        {"url": "https://example.com/", "job_types": ["ingst"]},
        by="me",
    )
    assert saved.secret is not None


async def test_doctor_names_hooks_of_mistyped_job_types(harness: WorkerHarness) -> None:
    @harness.lw.handler("ingest")
    async def ingest(ctx: Context) -> None: ...

    worker = await harness.start_worker()
    webhooks = harness.lw.webhooks
    await webhooks.set("erp", url="https://example.com/", job_types=["ingest"])
    found = await job_type_health.check_hooks(harness.lw.database)
    assert found.finding is Finding.OK
    await webhooks.set("erp", job_types=["ingst"])
    found = await job_type_health.check_hooks(harness.lw.database)
    assert found.finding is Finding.WARN
    assert found.message == (
        "the webhook erp is for the job type ingst, which no worker has published;"
        " did you mean ingest?"
    )
    await webhooks.set("erp", enabled=False)
    found = await job_type_health.check_hooks(harness.lw.database)
    assert found.finding is Finding.OK
    await worker.stop()

    @harness.lw.on_end("ingst")
    async def tell(ctx: Context, job: EndedJob) -> None: ...

    await harness.start_worker()
    found = await job_type_health.check_hooks(harness.lw.database)
    assert "the end hook on_end.tell is for the job type ingst" in found.message


async def test_doctor_names_a_hook_that_no_worker_handles(harness: WorkerHarness) -> None:
    declare(harness.lw)
    worker = await harness.start_worker()
    await worker.stop()
    await (await harness.lw.submit("ingest")).cancel()
    found = await job_type_health.check_handlers(harness.lw.database)
    assert "no live worker handles on_end.tell in the lane default" in found.message
    assert "laneway jobs ls --status queued --type on_end.tell" in (found.next or "")


async def test_forgotten_publisher_has_no_hooks(harness: WorkerHarness) -> None:
    from laneway.store import job_types

    shop = Laneway(harness.dsn, application="shop", **QUICK)
    declare(shop)
    async with shop:
        await (await harness.start_worker(shop)).stop()
        await shop.database.run(job_types.forget_publisher("shop", None))
    assert harness.rows(HOOKS) == []


# -- crashes -----------------------------------------------------------------------------------

_LOCK = 7702
PAUSE = f"""
create function public.pause() returns boolean language plpgsql volatile as $$
begin
    perform pg_advisory_xact_lock_shared({_LOCK});
    return true;
end $$
"""
AFTER_OUTCOME = "o.status = any (x.statuses)"
STUCK = "select count(*) > 0 from pg_locks where locktype = 'advisory' and not granted"


@contextmanager
def between_end_and_hook(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """Let ends of jobs wait after they wrote the outcome and before they submit the hook."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(PAUSE.encode())
        found = conn.execute("select pg_get_functiondef('laneway.submit_end_hooks'::regproc)")
        text = str((found.fetchone() or ("",))[0])
        assert AFTER_OUTCOME in text
        conn.execute(text.replace(AFTER_OUTCOME, f"{AFTER_OUTCOME} and public.pause()").encode())
        conn.execute(f"select pg_advisory_lock({_LOCK})".encode())
        yield conn


def hooks_of(harness: WorkerHarness, job_id: object) -> list[tuple[Any, ...]]:
    return harness.rows(
        "select v.status, v.result #>> '{}' from laneway.jobs_view v"
        " where v.job_type = 'on_end.tell' and v.payload #>> '{job,id}' = %s",
        str(job_id),
    )


async def test_worker_killed_between_end_and_hook_leaves_both_or_neither(
    harness: WorkerHarness,
) -> None:
    harness.lane("default", lease_seconds=2, poll_interval_ms=100)
    with WorkerCommand(harness.dsn, app=APP) as first:
        await wait_until(lambda: harness.rows(HOOKS))
        with between_end_and_hook(harness.dsn) as lock:
            job = await harness.lw.submit("plain")
            await wait_until(lambda: lock.execute(STUCK).fetchone() == (True,))
            first.kill()
            assert harness.status(job) == "running"
            assert hooks_of(harness, job.id) == []
    with WorkerCommand(harness.dsn, app=APP):
        assert await job.wait(120) == "done"
        expected = [("completed", f"{job.id} completed")]
        await wait_until(lambda: hooks_of(harness, job.id) == expected)


async def test_postgresql_killed_between_end_and_hook_leaves_neither(
    own_postgres: EmbeddedPostgres,
) -> None:
    migrate(own_postgres.dsn)
    async with WorkerHarness(own_postgres.dsn) as harness:
        harness.lane("default", lease_seconds=2, poll_interval_ms=100)
        with WorkerCommand(harness.dsn, app=APP):
            await wait_until(lambda: harness.rows(HOOKS))
            with between_end_and_hook(harness.dsn) as lock:
                job = await harness.lw.submit("plain")
                await wait_until(lambda: lock.execute(STUCK).fetchone() == (True,))
                await asyncio.to_thread(own_postgres.kill)
            await asyncio.to_thread(own_postgres.start)
            async with WorkerHarness(own_postgres.dsn) as again:
                await wait_until(lambda: again.status(job) == "completed")
                expected = [("completed", f"{job.id} completed")]
                await wait_until(lambda: hooks_of(again, job.id) == expected)
