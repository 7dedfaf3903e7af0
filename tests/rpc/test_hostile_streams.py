"""Streams that break, reconnect and answer late: no worker holds more jobs than its room."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import psycopg

from laneway.config.settings import Settings
from laneway.domain.claim import Claim
from laneway.rpc.server.handshake import StreamHandshake
from tests.rpc.dispatch_harness import DispatchHarness, handshake, settle
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import wait_until

JOBS = 200
ROOM = 5


class Restless:
    """A worker that connects to any replica, ends what it has in any order, and breaks off."""

    def __init__(self, docks: Sequence[DispatchHarness], chance: random.Random) -> None:
        self._docks = docks
        self._chance = chance
        self._said: StreamHandshake = handshake(max_in_flight=ROOM)
        self._has: list[Claim] = []

    @property
    def id(self) -> UUID:
        return self._said.worker_id

    async def work(self, until_done: asyncio.Event) -> None:
        while not until_done.is_set():
            holds = frozenset((one.job_id, one.attempt) for one in self._has)
            dispatch = self._chance.choice(self._docks)
            client = await dispatch.connect(replace(self._said, holds=holds))
            for _ in range(self._chance.randint(1, 8)):
                await self._take_turn(dispatch, until_done)
                self._has += [job.claim for job in client.jobs]
                client.jobs.clear()
            if self._chance.random() < 0.5:
                # Else its next stream is there before anybody notices that this one is over.
                await client.disconnect()
            if self._chance.random() < 0.5:
                # Else what came last has got lost on the way.
                self._has += [job.claim for job in client.jobs]

    async def _take_turn(self, dispatch: DispatchHarness, until_done: asyncio.Event) -> None:
        await asyncio.wait([asyncio.ensure_future(until_done.wait())], timeout=0.01)
        self._chance.shuffle(self._has)
        ended = [self._has.pop() for _ in range(self._chance.randint(0, len(self._has)))]
        kind = self._chance.choice(["finish", "finish", "release"])
        elsewhere = self._chance.choice(self._docks)
        await settle(elsewhere.replica, ended, kind)


class Observer:
    """Counts the leases of each worker, from outside, all the time."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.most: dict[UUID, int] = {}

    def look(self) -> int:
        """Count ended jobs."""
        with psycopg.connect(self._dsn, autocommit=True) as conn:
            found = conn.execute("select worker_id, count(*) from laneway.lease group by 1")
            for worker_id, count in found.fetchall():
                self.most[worker_id] = max(count, self.most.get(worker_id, 0))
            ended = conn.execute("select count(*) from laneway.outcome").fetchone()
        assert ended is not None
        return int(ended[0])


async def test_workers_respect_max_in_flight_and_every_job_ends_once(
    dsn: str, settings: Settings, factory: JobFactory
) -> None:
    chance = random.Random(5)
    for _ in range(JOBS):
        factory.submit("t", max_retries=0)
    observer, done = Observer(dsn), asyncio.Event()
    async with DispatchHarness(dsn, settings) as here, DispatchHarness(dsn, settings) as there:
        workers = [Restless((here, there), random.Random(chance.random())) for _ in range(4)]
        working = [asyncio.ensure_future(one.work(done)) for one in workers]
        try:
            await wait_until(lambda: observer.look() == JOBS, timeout=240)
        finally:
            done.set()
            await asyncio.gather(*working)
    assert set(observer.most) == {one.id for one in workers}
    assert max(observer.most.values()) <= ROOM
    failed = "select count(*) from laneway.outcome where status <> 'completed'"
    assert factory.conn.execute(failed).fetchone() == (0,)
    assert factory.conn.execute("select count(*) from laneway.lease").fetchone() == (0,)
