"""Explain says what a waiting job waits for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest
from typer.testing import CliRunner

from laneway.cli.main import app
from laneway.control.explain import explain
from laneway.control.waiting import waiting_reasons
from laneway.domain.explanation import Reason
from laneway.domain.job import Job
from laneway.domain.states import Status
from laneway.domain.wait import WaitsFor
from laneway.store import handler_waits, leases
from laneway.store.database import Database
from laneway.store.handler_waits import NewWait
from laneway.store.leases import Verdict
from tests.support.job_factory import JobFactory

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _published(factory: JobFactory) -> None:
    factory.publish("greet")


def after(factory: JobFactory, parents: Sequence[UUID], rule: str = "cancel") -> UUID:
    row = factory.conn.execute(
        "select job_id from laneway.submit('greet', after => %s, after_failure => %s)",
        [list(parents), rule],
    ).fetchone()
    assert row is not None
    return UUID(str(row[0]))


async def reasons(db: Database, job_id: UUID) -> list[Reason]:
    return list((await explain(db, job_id)).reasons)


async def test_waiting_job_names_the_jobs_that_have_not_ended(
    db: Database, factory: JobFactory
) -> None:
    running = factory.running().job_id
    queued = [factory.submit(delay=60.0) for _ in range(7)]
    done = factory.completed()
    child = after(factory, [done, *queued, running])
    [reason] = await reasons(db, child)
    assert reason.code == "waits_for_jobs"
    # What runs comes first.
    assert reason.message.startswith(f"it waits for 8 of 9 jobs: {running} (running), ")
    assert "(queued), " in reason.message
    assert reason.message.endswith(" and 3 more")
    explained = await explain(db, child)
    assert explained.starts_in_s is None


async def test_waiting_job_of_a_mistyped_type_says_so_before_its_turn(
    db: Database, factory: JobFactory
) -> None:
    parent = factory.submit()
    row = factory.conn.execute(
        "select job_id from laneway.submit('great', after => %s)", [[parent]]
    ).fetchone()
    assert row is not None
    waits, unpublished = await reasons(db, row[0])
    assert (waits.code, unpublished.code) == ("waits_for_jobs", "type_unpublished")
    assert unpublished.message.endswith("the job type great; did you mean greet?")


async def test_waiting_job_that_is_delayed_too_has_both_reasons(
    db: Database, factory: JobFactory
) -> None:
    running = factory.running().job_id
    row = factory.conn.execute(
        "select job_id from laneway.submit('greet', after => %s, delay => interval '1 hour')",
        [[running]],
    ).fetchone()
    assert row is not None
    waits, delayed = await reasons(db, row[0])
    assert (waits.code, delayed.code) == ("waits_for_jobs", "delayed")
    assert delayed.message.startswith("it is due in 3")
    assert "s, at " in delayed.message


async def test_held_job_names_the_failed_one_and_its_cure(
    db: Database, factory: JobFactory
) -> None:
    claim = factory.running()
    child = after(factory, [claim.job_id], "hold")
    error = '{"type": "ValueError", "message": "no", "traceback": "here"}'
    factory.settle(claim, "giveup", error=error)
    held, waits = await reasons(db, child)
    assert (held.code, waits.code) == ("held", "waits_for_jobs")
    assert f"`laneway jobs retry {claim.job_id}`" in held.message
    assert waits.message == f"it waits for 1 job: {claim.job_id} (failed)"


async def test_job_that_was_retried_alone_names_the_failed_one(
    db: Database, factory: JobFactory
) -> None:
    claim = factory.running()
    child = after(factory, [claim.job_id])
    factory.settle(claim, "giveup", error='{"type": "ValueError", "message": "no"}')
    factory.conn.execute("select laneway.advance()")
    factory.conn.execute("select laneway.retry(seq) from laneway.jobs where id = %s", [child])
    held, waits = await reasons(db, child)
    assert (held.code, waits.code) == ("held", "waits_for_jobs")
    assert f"`laneway jobs retry {claim.job_id}`" in held.message


async def test_circle_of_waits_is_named(db: Database, factory: JobFactory) -> None:
    first = factory.submit(delay=60.0)
    second = after(factory, [first])
    third = after(factory, [second])
    # The doors refuse it: only jobs that exist can be given.
    factory.conn.execute(
        "update laneway.open_edges e set parent = t.seq from laneway.jobs s, laneway.jobs t"
        " where s.id = %s and t.id = %s and e.child = s.seq",
        [second, third],
    )
    circle = (await reasons(db, third))[0]
    assert circle.code == "circle"
    assert f"{third} waits for {second} waits for {third}" in circle.message


def job_that_waits(wait: WaitsFor, workspace: str = "default") -> Job:
    return Job(
        id=UUID(int=7), job_type="greet", lane="default", status=Status.WAITING, created_at=NOW,
        waits_for=wait, workspace=workspace,
    )  # fmt: skip


def test_wait_for_an_event_says_how_to_send_it() -> None:
    until = datetime(2026, 11, 19, microsecond=185467, tzinfo=UTC)
    wait = WaitsFor(kind="event", event="reviewed", key="folder-7", until=until)
    [reason] = waiting_reasons(job_that_waits(wait), None, NOW)
    assert reason.message == (
        "it waits for the event reviewed with the key folder-7, until 2026-11-19T00:00:00+00:00 at"
        " the latest (`laneway events send reviewed '{…}' --key folder-7`)"
    )


def test_command_that_sends_an_event_names_the_workspace() -> None:
    wait = WaitsFor(kind="event", event="reviewed", key="7")
    [reason] = waiting_reasons(job_that_waits(wait, "the lab"), None, NOW)
    assert reason.message.endswith(
        "(`laneway events send reviewed '{…}' --key 7 --workspace 'the lab'`)"
    )


def test_command_that_sends_an_event_needs_its_payload() -> None:
    wait = WaitsFor(kind="event", event="reviewed", key="7")
    [reason] = waiting_reasons(job_that_waits(wait), None, NOW)
    command = reason.message.partition("(`")[2].removesuffix("`)")
    refused = CliRunner().invoke(app, shlex.split(command)[1:])
    assert refused.exit_code == 2
    assert "payload" in refused.output


def test_command_that_sends_an_event_runs_nothing_else() -> None:
    wait = WaitsFor(kind="event", event="paid; reboot", key="$(reboot) `reboot`")
    [reason] = waiting_reasons(job_that_waits(wait), None, NOW)
    command = reason.message.partition("(`")[2].removesuffix("`)")
    assert shlex.split(command)[2:] == [
        "send", "paid; reboot", "{…}", "--key", "$(reboot) `reboot`",
    ]  # fmt: skip


def test_sleeping_job_says_until_when() -> None:
    until = datetime(2026, 11, 19, microsecond=185467, tzinfo=UTC)
    wait = WaitsFor(kind="sleep", name="cool-down", until=until)
    [reason] = waiting_reasons(job_that_waits(wait), None, NOW)
    assert reason.code == "sleeping"
    assert reason.message.startswith("its handler sleeps until 2026-11-19T00:00:00+00:00 (")


REVIEW = NewWait("review", "event", 60.0, event="reviewed", key="7")
NAP = NewWait("nap", "sleep", 60.0)


def suspended(factory: JobFactory, wait: NewWait) -> UUID:
    claim = factory.running()
    assert factory.run(handler_waits.begin(claim, wait)).state == "open"
    assert factory.run(leases.settle([Verdict(claim, "wait", wait.name)]))
    return claim.job_id


def pass_time(factory: JobFactory) -> str:
    """End the time of the wait 40 s ago; return it as explain writes it."""
    row = factory.conn.execute(
        "update laneway.waiting set wake_at = clock_timestamp() - interval '40 s' returning wake_at"
    ).fetchone()
    assert row is not None
    return str(row[0].isoformat(timespec="seconds"))


@pytest.mark.parametrize("wait", [REVIEW, NAP], ids=lambda wait: wait.kind)
async def test_wait_whose_time_is_over_names_the_missing_worker(
    db: Database, factory: JobFactory, wait: NewWait
) -> None:
    factory.register(name="first")
    job_id = suspended(factory, wait)
    [waits] = await reasons(db, job_id)
    assert "over since" not in waits.message
    until = pass_time(factory)
    [waits] = await reasons(db, job_id)
    assert f"; its time is over since {until}: a worker" in waits.message
    assert "laneway jobs run-now" not in waits.message
    assert "laneway events send" not in waits.message
    for ago_s, code in ((20, "worker_silent"), (60, "no_worker")):
        factory.conn.execute(
            "update laneway.workers set seen_at = clock_timestamp() - make_interval(secs => %s)",
            [ago_s],
        )
        worker, again = await reasons(db, job_id)
        assert (worker.code, again) == (code, waits)
        assert "first" in worker.message


@pytest.mark.parametrize("wait", [REVIEW, NAP], ids=lambda wait: wait.kind)
async def test_wait_names_a_missing_worker_before_its_end(
    db: Database, factory: JobFactory, wait: NewWait
) -> None:
    job_id = suspended(factory, wait)
    waits, worker = await reasons(db, job_id)
    assert (worker.code, "laneway" in waits.message) == ("no_worker", True)
    factory.register(job_types=("other",))
    assert [each.code for each in await reasons(db, job_id)][1:] == ["type_not_handled"]
