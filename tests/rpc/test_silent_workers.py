"""Remote workers that hang with their stream open: jobs that lapse there go to other workers.

Time passes for the server and in the database by leaps, which no machine is too slow for.
"""

from __future__ import annotations

import time

import pytest

from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.server import dispatch_server, dispatcher, liveness, presence, service
from tests.api.conftest import People, Principal
from tests.rpc.rpc_harness import ACCEPTED, RpcHarness, assigned, sent
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import wait_until


class Clock:
    """The clock of the server, and the leases in the database."""

    def __init__(self, factory: JobFactory) -> None:
        self._scene = factory
        self._leapt_s = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self._leapt_s

    def leap(self, seconds: float) -> None:
        self._leapt_s += seconds
        self._scene.conn.execute(
            "update laneway.lease set lease_until = lease_until - make_interval(secs => %(s)s),"
            " claimed_at = claimed_at - make_interval(secs => %(s)s)",
            {"s": seconds},
        )


@pytest.fixture
def clock(factory: JobFactory, monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock(factory)
    for module in (dispatcher, presence, dispatch_server, service, liveness):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def ann(people: People) -> Principal:
    return people.new("ann", "remote_worker")


async def goes_to_another_worker(
    rpc: RpcHarness, factory: JobFactory, ann: Principal, job: pb.Assignment
) -> None:
    """The watchdog takes the job back; the worker that let it lapse does not get it again."""
    query = (
        "select from laneway.attempts a join laneway.jobs j using (seq)"
        " where j.id = %s and a.attempt = %s and a.outcome = 'lost'"
    )
    lost = [job.job_id, job.attempt]
    await wait_until(lambda: factory.conn.execute(query, lost).fetchone() is not None)
    rpc.replica.presence.touch_now()
    await rpc.replica.presence.run_once()
    factory.conn.execute("update laneway.delayed set run_at = clock_timestamp()")
    await rpc.replica.poller.run_once()
    await wait_until(lambda: rpc.replica.round_robin.is_idle)
    leased = "select from laneway.lease l join laneway.jobs j using (seq) where j.id = %s"
    assert factory.conn.execute(leased, [job.job_id]).fetchone() is None
    (again,) = await assigned(await rpc.call(ann).connected(), 1)
    assert (again.job_id, again.attempt) == (job.job_id, job.attempt + 1)


async def test_earlier_renewal_of_other_lease_is_not_a_sign_of_life(
    rpc: RpcHarness, factory: JobFactory, ann: Principal, clock: Clock
) -> None:
    for _ in range(2):
        factory.submit()
    calls = rpc.call(ann)
    lapses, renewed = await assigned(await calls.connected(), 2)
    clock.leap(25.0)
    assert await calls.beat(renewed) == [ACCEPTED]
    clock.leap(10.0)
    await goes_to_another_worker(rpc, factory, ann, lapses)


async def test_lease_kept_over_a_reconnect_that_lapses_is_not_sent_again(
    rpc: RpcHarness, factory: JobFactory, ann: Principal, clock: Clock
) -> None:
    factory.submit()
    calls = rpc.call(ann)
    (job,) = await assigned(await calls.connected(), 1)
    await calls.connected(holds=[sent(job)])
    assert await calls.beat(job) == [ACCEPTED]
    clock.leap(35.0)
    await goes_to_another_worker(rpc, factory, ann, job)


async def test_worker_that_renewed_at_another_server_gets_more_jobs(
    rpc: RpcHarness, factory: JobFactory, ann: Principal, clock: Clock
) -> None:
    for _ in range(2):
        factory.submit()
    stream = await rpc.call(ann).connected()
    await assigned(stream, 2)
    clock.leap(25.0)
    factory.conn.execute(
        "select laneway.heartbeat(array_agg(seq), array_agg(attempt)) from laneway.lease"
    )
    clock.leap(10.0)
    rpc.replica.presence.touch_now()
    factory.submit()
    await assigned(stream, 1)
