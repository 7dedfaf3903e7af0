"""Submits jobs at a steady rate, or as fast as jobs end: `python -m bench.endurance.submitter`."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from bench.endurance.app import TIMED, lw
from bench.partner import Partner
from bench.server import Database
from bench.workers import environment

TICK_S = 0.05
BATCH = 1000
TEXT = "x" * 39
# Without a rate: so many jobs wait at most.
MOST_WAITING = 3000
_WAITING = "select count(*) from (select from laneway.ready limit 3000) few"


def due(rate: float, passed_s: float, sent: int) -> int:
    """Jobs to submit now, so that `rate` is kept since the start; at most a batch."""
    return max(0, min(BATCH, int(rate * passed_s) - sent))


async def _submit(count: int) -> None:
    job = (TIMED, {"at": time.time_ns(), "text": TEXT})
    await lw.submit_many([job] * count)


async def submit_steadily(rate: float, seconds: float) -> int:
    """Submit `rate` jobs per second; return how many."""
    sent, began = 0, time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        count = due(rate, passed, sent)
        if count:
            await _submit(count)
            sent += count
        if count < BATCH:
            await asyncio.sleep(TICK_S)
    return sent


async def submit_as_fast_as_jobs_end(seconds: float) -> int:
    """Keep some thousand jobs waiting; return how many were submitted."""
    sent, began = 0, time.monotonic()
    async with lw.database.connection() as conn:
        while time.monotonic() - began < seconds:
            row = await (await conn.execute(_WAITING)).fetchone()
            if row is not None and row[0] < MOST_WAITING:
                await _submit(BATCH)
                sent += BATCH
            else:
                await asyncio.sleep(0.01)
    return sent


async def main(rate: float, seconds: float) -> None:
    async with lw:
        await lw.ready()
        print("ready", flush=True)
        sys.stdin.readline()
        if rate:
            sent = await submit_steadily(rate, seconds)
        else:
            sent = await submit_as_fast_as_jobs_end(seconds)
    json.dump({"sent": sent}, sys.stdout)


class Submitter(Partner):
    """The submitting process; without a rate, it submits as fast as jobs end."""

    def __init__(self, database: Database, rate: float, seconds: float) -> None:
        variables = environment(database)
        super().__init__("bench.endurance.submitter", rate, seconds, variables=variables)
        self._seconds = seconds

    def begin(self) -> None:
        """Wait until the process has started, and let it submit."""
        self.expect("ready")
        self.send("go")

    def sent(self) -> int:
        """Wait for its end; return how many jobs it submitted."""
        return int(self.result(60 + self._seconds)["sent"])


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), float(sys.argv[2])))
