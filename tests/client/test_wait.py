"""Waiting, cancelling and reading."""

from __future__ import annotations

import asyncio
import itertools
import json
from datetime import timedelta
from typing import Any, TypeVar
from uuid import uuid4

import psycopg
import pytest

from laneway.client import Client
from laneway.client.job_end import LONGEST_POLL_S
from laneway.config.settings import Settings
from laneway.domain.current_claim import current_claim
from laneway.domain.states import Status
from laneway.errors import (
    DatabaseUnavailable,
    InvalidInput,
    JobFailed,
    NotFound,
    Refused,
    SchemaMismatch,
)
from laneway.store import database, waits
from laneway.store.database import Database
from laneway.store.statement import Statement
from tests.client.connections import hang_up
from tests.support.notifications import NotificationListener
from tests.support.store_client import StoreClient
from tests.support.worker_harness import wait_until

T = TypeVar("T")


@pytest.mark.parametrize("result", [None, {"pages": 3}, [1, "x"], "text", 0, False, {}])
async def test_waiting_returns_result(client: Client, db: StoreClient, result: object) -> None:
    job = await client.submit("t")
    waiting = asyncio.create_task(job.wait(timeout=60))
    (claim,) = db.claimed()
    db.settle(claim, "finish", result=None if result is None else json.dumps(result))
    assert await waiting == result
    assert await job.wait(timeout=0) == result
    assert (await job.get()).status is Status.COMPLETED


async def test_failed_job_raises_its_error(client: Client, db: StoreClient) -> None:
    job = await client.submit("t")
    (claim,) = db.claimed()
    error = {"type": "ValueError", "message": "no such page", "traceback": "…"}
    db.settle(claim, "giveup", error=json.dumps(error))
    with pytest.raises(JobFailed, match=f"job {job.id} failed: ValueError: no such page"):
        await job.wait(timeout=60)


async def test_cancelled_job_raises(client: Client) -> None:
    job = await client.submit("t")
    await job.cancel("not needed")
    with pytest.raises(JobFailed, match=f"job {job.id} was cancelled"):
        await job.wait(timeout=60)


async def test_waiting_ends_at_the_timeout(client: Client, db: StoreClient) -> None:
    job = await client.submit("t")
    cure = rf"its status is approved \(queued\); `laneway jobs explain {job.id}` says why"
    with pytest.raises(TimeoutError, match=rf"did not end within 0\.05 s: {cure}"):
        await job.wait(timeout=0.05)
    with pytest.raises(TimeoutError):
        await client.wait(str(job.id), timeout=0)
    db.claimed()
    with pytest.raises(TimeoutError):
        await job.wait(timeout=0.05)


@pytest.mark.parametrize("timeout", ["5s", 1e12, True])
async def test_timeout_of_a_wait_is_checked(client: Client, timeout: Any) -> None:
    job = await client.submit("t")
    with pytest.raises(InvalidInput, match=r"^timeout: must be "):
        await job.wait(timeout)
    with pytest.raises(InvalidInput, match=r"^timeout: must be "):
        await job.watch(timeout)
    with pytest.raises(InvalidInput, match=r"^timeout: must be "):
        await client.wait_flow(job.id, timeout)


async def test_wait_until_a_time_that_has_passed_times_out(client: Client) -> None:
    job = await client.submit("t")
    with pytest.raises(TimeoutError, match="did not end within 0 s"):
        await job.wait(-1)


async def test_timeout_of_a_wait_may_be_a_timedelta(client: Client) -> None:
    job = await client.submit("t")
    with pytest.raises(TimeoutError, match=r"did not end within 0\.01 s"):
        await job.wait(timedelta(milliseconds=10))
    async with client.flow("nightly") as flow:
        flow.add("t")
    with pytest.raises(TimeoutError, match=r"did not end within 0\.01 s"):
        await flow.wait(timedelta(milliseconds=10))


async def test_unknown_job_is_not_found(client: Client) -> None:
    nobody = uuid4()
    for call in (client.wait(nobody, 5), client.get(nobody), client.cancel(nobody)):
        with pytest.raises(NotFound, match=str(nobody)):
            await call
    for what in ("x", "", 5, None):
        wrong: Any = what
        for refused in (client.wait(wrong), client.get(wrong), client.cancel(wrong)):
            with pytest.raises(InvalidInput, match="UUID"):
                await refused


async def test_polling_slows_down_while_nothing_happens(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await client.submit("t", wake=False)
    pauses: list[float] = []
    real = asyncio.sleep

    async def recorded(delay: float) -> None:
        pauses.append(delay)
        if len(pauses) == 20:
            raise ConnectionAbortedError
        await real(0)

    monkeypatch.setattr(asyncio, "sleep", recorded)
    with pytest.raises(ConnectionAbortedError):
        await job.wait()
    assert 0.008 <= pauses[0] <= 0.012
    assert all(0.4 <= pause <= 0.6 for pause in pauses[-5:])
    assert all(later < 2.2 * earlier for earlier, later in itertools.pairwise(pauses))


async def test_waiting_survives_database_outage(
    client: Client, db: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await client.submit("t")
    (claim,) = db.claimed()
    db.settle(claim, "finish", result="7")
    hang_up(db)
    real = database.connect
    tries = 0

    async def away(*given: Any) -> Any:
        nonlocal tries
        tries += 1
        if tries < 5:
            raise psycopg.OperationalError("down")
        return await real(*given)

    monkeypatch.setattr(database, "connect", away)
    assert await job.wait(timeout=60) == 7
    assert tries == 5


async def test_timeout_holds_during_database_outage(settings: Settings) -> None:
    client = Client(Database("host=127.0.0.1 port=1", settings), settings)
    with pytest.raises(TimeoutError) as ended:
        await client.wait(uuid4(), timeout=0.2)
    assert isinstance(ended.value.__cause__, DatabaseUnavailable)


class NoNotes(Database):
    """Never answers the note of a wait."""

    notes = 0

    async def run(self, statement: Statement[T]) -> T:
        if statement.name == "jobs/note_wait":
            self.notes += 1
            await asyncio.Event().wait()
        return await super().run(statement)


@pytest.mark.parametrize("way", ["result", "timeout", "cancel"])
async def test_wait_in_a_handler_does_not_wait_for_its_note(
    dsn: str, settings: Settings, db: StoreClient, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    silent = NoNotes(dsn, settings)
    client = Client(silent, settings)
    parent, child = await client.submit("t"), await client.submit("t")
    claims = {claim.job_id: claim for claim in db.claimed()}
    monkeypatch.setattr("laneway.client.job_end.SHORTEST_POLL_S", LONGEST_POLL_S)
    current_claim.set(claims[parent.id])
    async with asyncio.timeout(60):
        waiting = asyncio.create_task(child.wait(timeout=1 if way == "timeout" else None))
        await wait_until(lambda: silent.notes == 1)
        if way == "result":
            db.settle(claims[child.id], "finish", result="7")
            assert await waiting == 7
        else:
            if way == "cancel":
                waiting.cancel()
            with pytest.raises(TimeoutError if way == "timeout" else asyncio.CancelledError):
                await waiting
    await client.close()
    await silent.close()


def test_attempt_notes_a_bounded_number_of_waits(db: StoreClient) -> None:
    claim = db.running()
    db.do("update laneway.lease set waits_for = array(select generate_series(-99, -1))")
    others = [db.one("select id from laneway.jobs where seq = %s", db.submit()) for _ in range(2)]
    assert db.run(waits.note(claim, others[0])) is True
    assert db.run(waits.note(claim, others[1])) is False
    assert db.one("select cardinality(waits_for) from laneway.lease") == 100
    assert db.run(waits.note(claim, others[0], ends=True)) is True
    assert db.one("select cardinality(waits_for) from laneway.lease") == 99


async def test_missing_schema_is_not_waited_for(empty_dsn: str, settings: Settings) -> None:
    database = Database(empty_dsn, settings)
    with pytest.raises(SchemaMismatch):
        await Client(database, settings).wait(uuid4(), timeout=20)
    await database.close()


# -- cancel -------------------------------------------------------------------------------------


async def test_queued_job_is_cancelled_at_once(client: Client, db: StoreClient) -> None:
    for job in (await client.submit("t"), await client.submit("t", delay=60)):
        assert await job.cancel("not needed") is Status.CANCELLED
        shown = await job.get()
        assert (shown.status, shown.started_at) == (Status.CANCELLED, None)
        row = db.row("outcome", db.seq_of(job.id))
        assert row["cancel_reason"] == "not needed"
    assert db.claimed() == []


async def test_worker_of_a_running_job_is_asked_to_stop(
    client: Client, dsn: str, db: StoreClient
) -> None:
    job = await client.submit("t", wake=False)
    (claim,) = db.claimed()
    async with NotificationListener(dsn) as listener:
        assert await client.cancel(job.id, "enough", "me") is Status.RUNNING
        assert await listener.received() == [f"cancel {db.worker}"]
    assert (await job.get()).cancel_requested_at is not None
    assert db.heartbeat([claim])[0].answer == "cancel_requested"


async def test_job_that_ended_refuses_to_be_cancelled(client: Client, db: StoreClient) -> None:
    job = await client.submit("t")
    (claim,) = db.claimed()
    db.settle(claim, "finish")
    with pytest.raises(Refused, match="completed"):
        await job.cancel()
    other = await client.submit("t")
    await other.cancel()
    with pytest.raises(Refused, match="cancelled"):
        await other.cancel()


async def test_reason_of_cancel_is_checked(client: Client) -> None:
    job = await client.submit("t")
    with pytest.raises(InvalidInput, match="reason"):
        await job.cancel("\x00")
    with pytest.raises(InvalidInput, match="by"):
        await client.cancel(job.id, by="x" * 300)
    assert (await job.get()).status is Status.APPROVED


async def test_job_is_shown_with_its_attempts(client: Client, db: StoreClient) -> None:
    job = await client.submit("t")
    (claim,) = db.claimed()
    db.settle(claim, "fail", error=json.dumps({"type": "E", "message": "m"}), delay_s=0.0)
    db.claimed()
    shown = await client.get(job.id)
    assert [attempt.attempt for attempt in shown.attempts] == [1, 2]
    assert shown.attempts[0].outcome == "failed"
    assert shown.status is Status.RUNNING
