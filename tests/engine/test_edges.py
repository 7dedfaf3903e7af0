"""Jobs after other jobs, run by workers: in order, at once, and after the death of a worker."""

from __future__ import annotations

import json
from uuid import UUID, uuid4

import pytest

from laneway import Context
from tests.support.worker_harness import WorkerHarness, wait_until

WIDTH = 1500


@pytest.fixture
def sleepy(harness: WorkerHarness) -> WorkerHarness:
    """Its workers poll once in two minutes: what starts sooner was not found by polling."""
    harness.lane("default", poll_interval_ms=120000)
    return harness


def submit(harness: WorkerHarness, links: list[list[int]]) -> list[UUID]:
    """Submits a job after these earlier ones, for each."""
    ids = [uuid4() for _ in links]
    after = [{"after": [str(ids[one]) for one in link]} for link in links]
    harness.do("begin")
    flow = uuid4()
    harness.do("select laneway.create_flow(%s, 'test')", flow)
    harness.do(
        'select * from laneway.submit_batch(%s, %s::jsonb, %s, \'[{"job_type": "job"}]\','
        " p_after => %s::jsonb, p_flow => %s)",
        ids,
        json.dumps([{"n": n} for n in range(len(ids))]),
        [0] * len(ids),
        json.dumps(after),
        flow,
    )
    harness.do("select pg_notify('laneway', 'wake job')")
    harness.do("commit")
    return ids


def recorded(harness: WorkerHarness) -> list[int]:
    ran: list[int] = []

    @harness.lw.handler("job")
    async def job(ctx: Context, n: int) -> None:
        ran.append(n)

    return ran


def completed(harness: WorkerHarness, count: int) -> bool:
    text = "select count(*) = %s from laneway.outcome where status = 'completed'"
    return bool(harness.one(text, count))


async def test_chain_runs_in_order_without_polls(sleepy: WorkerHarness) -> None:
    ran = recorded(sleepy)
    await sleepy.start_worker()
    submit(sleepy, [[], *([n] for n in range(30))])
    await wait_until(lambda: completed(sleepy, 31))
    assert ran == list(range(31))


async def test_wide_fan_out_and_in_run_without_polls(sleepy: WorkerHarness) -> None:
    ran = recorded(sleepy)
    for _ in range(2):
        await sleepy.start_worker()
    links = [[], *([0] for _ in range(WIDTH)), list(range(1, WIDTH + 1))]
    submit(sleepy, links)
    await wait_until(lambda: completed(sleepy, WIDTH + 2))
    assert ran[0] == 0
    assert ran[-1] == WIDTH + 1
    assert sorted(ran) == list(range(WIDTH + 2))
    # The leader adds up the flow, and nothing is left.
    await wait_until(lambda: sleepy.one("select count(*) = 0 from laneway.flow_tallies"))
    assert sleepy.one("select jobs, completed from laneway.flows") == (WIDTH + 2, WIDTH + 2)
    for table in ("arrivals", "open_edges", "countdowns", "waiting"):
        assert sleepy.one(f"select count(*) from laneway.{table}") == 0


async def test_leader_does_what_a_dead_process_left(sleepy: WorkerHarness) -> None:
    ran = recorded(sleepy)
    submit(sleepy, [[], [0]])
    # A worker that ends the first job and dies before it looks at what is left.
    parent = sleepy.one("select seq from laneway.ready")
    sleepy.do("delete from laneway.ready")
    sleepy.do(
        "insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries)"
        " values (%s, 'completed', 'default', 'job', 0, 1, 0)",
        parent,
    )
    sleepy.do("insert into laneway.arrivals (kind, seq) values ('ended', %s)", parent)
    await sleepy.start_worker()
    await wait_until(lambda: completed(sleepy, 2))
    assert ran == [1]
