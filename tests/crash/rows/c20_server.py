"""C20: PostgreSQL is stopped in immediate mode and restarted under busy servers with readers."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from typing import Any
from uuid import uuid4

import httpx2

from tests.crash.row_run import RowRun, cancel_load
from tests.crash.rows.c19_streams import Reader, Replica, find_gaps, many, serving, token_of

FAULTS, JOBS, STREAMS = 4, 1200, 40
EVERY_S = 2.5
SUBMITTERS = 8
USABLE_S = 3.0
ITEMS, ITEM_MS = 60, 150
READ_S = 60.0


async def inject(run: RowRun) -> None:
    restarts = run.count(FAULTS, 2)
    token = token_of(run, "operator")
    replicas = [Replica(run), Replica(run)]
    answers: Counter[int] = Counter()
    try:
        workers = [run.start_worker() for _ in range(2)]
        await run.ready(*workers)
        async with httpx2.AsyncClient(timeout=30, limits=many()) as http:
            await serving(http, replicas)
            submitters = [
                Submitter(run, http, [replicas[(n + i) % 2].url for i in (0, 1)], token, answers)
                for n in range(SUBMITTERS)
            ]
            watched = [
                await submitters[0].submit("tracked", n % 2 == 0, items=ITEMS, ms=ITEM_MS)
                for n in range(run.count(STREAMS, 8))
            ]
            urls = [replica.url for replica in replicas]
            readers = [Reader(job, urls, token) for job in watched if job]
            reading = asyncio.gather(*(reader.read(http) for reader in readers))
            each = math.ceil(run.count(JOBS, 80) / SUBMITTERS)
            load = asyncio.gather(*(one.run(each, restarts * EVERY_S) for one in submitters))
            usable: list[float] = []
            try:
                for _ in range(restarts):
                    await asyncio.sleep(EVERY_S / 2)
                    usable.append(await _restart(run, submitters[0]))
                    await asyncio.sleep(EVERY_S / 2)
                await load
                async with asyncio.timeout(READ_S):
                    await reading
            finally:
                await cancel_load(load)
                await cancel_load(reading)
            await run.drain()
        gone = [replica for replica in replicas if replica.process.poll() is not None]
    finally:
        for replica in replicas:
            replica.end()
    result = run.result
    result.must(
        f"submits are taken ≤ {USABLE_S:g} s after PostgreSQL is up",
        ", ".join(f"{seconds:.2f}" for seconds in usable),
        held=max(usable) <= USABLE_S,
    )
    result.must("servers that exited", len(gone), held=not gone)
    odd = {status: n for status, n in answers.items() if status not in (200, 202, 503)}
    result.must("answers but 200, 202 and 503", f"{odd} of {dict(answers)}", held=not odd)
    gaps, repeated, wrong_ends = find_gaps(run, readers)
    result.figures |= {"restart_stream_gaps": gaps}
    result.must("events missed", gaps, held=gaps == 0)
    result.must("events repeated or out of order", repeated, held=repeated == 0)
    result.must("streams without exactly one end", wrong_ends, held=wrong_ends == 0)


class Submitter:
    """Posts jobs one after the other; those with a key until the result is known."""

    def __init__(
        self,
        run: RowRun,
        http: httpx2.AsyncClient,
        urls: list[str],
        token: str,
        answers: Counter[int],
    ) -> None:
        self._run = run
        self._http = http
        self._urls = urls
        self._headers = {"Authorization": f"Bearer {token}"}
        self._answers = answers

    async def run(self, total: int, seconds: float) -> None:
        began = time.monotonic()
        for i in range(total):
            await self.submit("quick", i % 2 == 0, ms=self._run.load_random.randint(1, 60))
            await asyncio.sleep(max(0.0, began + seconds * i / total - time.monotonic()))

    async def submit(self, job_type: str, is_keyed: bool, **payload: Any) -> str | None:
        """Submit a job; return its id, or None if the result is unknown (never with a key)."""
        _, made, _ = self._run.job(job_type, **payload)
        op = made["op"]
        note = self._run.history.add
        key = f"key-{op}" if is_keyed else None
        note("submit", op=op, phase="invoke", unique_key=key, t=time.monotonic())
        headers = {**self._headers, **({"Idempotency-Key": uuid4().hex} if is_keyed else {})}
        turn = 0
        while True:
            url = self._urls[turn % len(self._urls)]
            turn += 1
            try:
                answer = await self._http.post(
                    f"{url}/jobs", json={"job_type": job_type, "payload": made}, headers=headers
                )
            except httpx2.HTTPError:
                status = None
            else:
                status = answer.status_code
                self._answers[status] += 1
                if status in (200, 202):
                    job = str(answer.json()["id"])
                    note("submit", job, op=op, phase="ok", unique_key=key, t=time.monotonic())
                    return job
            if not is_keyed:
                note("submit", op=op, phase="info", unique_key=None, t=time.monotonic())
                return None
            await asyncio.sleep(0.05)


async def _restart(run: RowRun, submitter: Submitter) -> float:
    """Restart; return the seconds from PostgreSQL's return to a successful submit."""
    run.conn.close()
    await asyncio.to_thread(run.postgres.restart, "immediate")
    run.fault(kind="restart")
    up = run.last_fault
    await submitter.submit("quick", is_keyed=True, ms=1)
    return time.monotonic() - up


def check(run: RowRun) -> None:
    lost = run.result.acked_lost
    acked = sum(event.more["phase"] == "ok" for event in run.history.of("submit"))
    unknown = sum(event.more["phase"] == "info" for event in run.history.of("submit"))
    run.result.must(
        "acknowledged submits lost", f"{lost} of {acked} ({unknown} unknown)", held=lost == 0
    )
    twice = run.ask(
        "select count(*) from (select payload ->> 'op' from laneway.jobs group by 1"
        " having count(*) > 1) x"
    )
    run.result.must("submits that became two jobs", twice, held=twice == 0)
