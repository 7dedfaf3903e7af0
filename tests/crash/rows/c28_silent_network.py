"""C28: every connection of a worker and a server goes silent; after a while new ones work.

Data on the old connections is lost, as after a change of routes or a failed firewall.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import httpx2

from laneway.testing.proxy import Proxy
from tests.crash.row_run import RowRun, wait_until
from tests.crash.rows.c19_streams import Replica, serving, token_of
from tests.support.server_address import address, through

ROUNDS = 3
# Seconds of silence, in turn.
SILENT_S = (8.0, 20.0, 45.0)
BACK_S = 10.0
LONGEST_S = 15.0
REQUESTERS = 6
PATIENCE_S = 90.0


async def inject(run: RowRun) -> None:
    token = token_of(run, "operator")
    async with Proxy(*address(run.dsn)) as proxy:
        far = through(proxy, run.dsn)
        replica = Replica(run, far)
        requests = Requests(f"{replica.url}/jobs", token)
        try:
            near, run.worker_dsn = run.worker_dsn, far
            worker = run.start_worker()
            run.worker_dsn = near
            await run.ready(worker)
            async with run.client() as client, httpx2.AsyncClient(timeout=120) as http:
                await serving(http, [replica])
                asking = asyncio.gather(*(requests.run(http) for _ in range(REQUESTERS)))
                try:
                    for number in range(run.count(ROUNDS)):
                        await run.submit(client, run.job("quick", ms=1))
                        await wait_until(lambda: run.waiting() == 0, 30, "the worker works")
                        proxy.blackhole()
                        proxy.swallow()
                        run.fault(kind="silence")
                        await run.submit(client, run.job("quick", ms=1))
                        await asyncio.sleep(SILENT_S[number % len(SILENT_S)])
                        proxy.heal()
                        back = time.monotonic()
                        run.last_fault = back
                        await wait_until(
                            lambda: run.waiting() == 0, PATIENCE_S, "the worker is back", 0.01
                        )
                        run.history.add("back", took=time.monotonic() - back)
                        served = requests.answers[200]
                        await wait_until(
                            lambda n=served: requests.answers[200] > n,  # type: ignore[misc]
                            PATIENCE_S,
                            "the server is back",
                            0.01,
                        )
                        run.history.add("back", took=time.monotonic() - back)
                finally:
                    requests.is_over = True
                    await asking
        finally:
            replica.end()
    run.history.add("requests", longest=requests.longest_s, answers=dict(requests.answers))
    await run.drain(BACK_S + 5)


class Requests:
    """Sends requests in a loop and records the longest wait."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self.answers: Counter[int] = Counter()
        self.longest_s = 0.0
        self.is_over = False

    async def run(self, http: httpx2.AsyncClient) -> None:
        while not self.is_over:
            began = time.monotonic()
            try:
                status = (await http.get(self._url, headers=self._headers)).status_code
            except httpx2.HTTPError:
                status = 0
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            self.answers[status] += 1
            await asyncio.sleep(0.1)


def check(run: RowRun) -> None:
    back = [event.more["took"] for event in run.history.of("back")]
    worst = max(back, default=99.0)
    run.result.figures["worker_back_s"] = round(worst, 2)
    run.result.must(
        f"workers and servers work ≤ {BACK_S:g} s after the network's return",
        f"{worst:.2f} s of {len(back)}",
        held=worst <= BACK_S,
    )
    for event in run.history.of("requests"):
        longest, answers = event.more["longest"], event.more["answers"]
        run.result.figures["longest_request_s"] = round(longest, 2)
        run.result.must(
            f"no request waits longer than {LONGEST_S:g} s",
            f"{longest:.2f} s",
            held=longest <= LONGEST_S,
        )
        odd = {status: n for status, n in answers.items() if status not in (200, 503)}
        run.result.must("answers but 200 and 503", f"{odd} of {answers}", held=not odd)
