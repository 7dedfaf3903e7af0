"""C28: every connection of a worker and of a server goes silent, and after a while new ones work.

What was sent on the old ones is lost for good, as after a change of routes or a failed firewall.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import httpx2

from laneway.testing.proxy import Proxy
from tests.address import address, through
from tests.crash.rows.c19_streams import Replica, serving, token_of
from tests.crash.stage import Stage, until

ROUNDS = 3
# How long nothing gets through, in turn.
SILENT_S = (8.0, 20.0, 45.0)
BACK_S = 10.0
LONGEST_S = 15.0
REQUESTERS = 6
PATIENCE_S = 90.0


async def play(stage: Stage) -> None:
    token = token_of(stage, "operator")
    async with Proxy(*address(stage.dsn)) as proxy:
        far = through(proxy, stage.dsn)
        replica = Replica(stage, far)
        requests = Requests(f"{replica.url}/jobs", token)
        try:
            near, stage.worker_dsn = stage.worker_dsn, far
            worker = stage.start_worker()
            stage.worker_dsn = near
            await stage.ready(worker)
            async with stage.client() as client, httpx2.AsyncClient(timeout=120) as http:
                await serving(http, [replica])
                asking = asyncio.gather(*(requests.run(http) for _ in range(REQUESTERS)))
                try:
                    for number in range(stage.count(ROUNDS)):
                        await stage.submit(client, stage.job("quick", ms=1))
                        await until(lambda: stage.waiting() == 0, 30, "the worker works")
                        proxy.blackhole()
                        proxy.swallow()
                        stage.fault(kind="silence")
                        await stage.submit(client, stage.job("quick", ms=1))
                        await asyncio.sleep(SILENT_S[number % len(SILENT_S)])
                        proxy.heal()
                        back = time.monotonic()
                        stage.last_fault = back
                        await until(
                            lambda: stage.waiting() == 0, PATIENCE_S, "the worker is back", 0.01
                        )
                        stage.history.add("back", took=time.monotonic() - back)
                        served = requests.answers[200]
                        await until(
                            lambda n=served: requests.answers[200] > n,  # type: ignore[misc]
                            PATIENCE_S,
                            "the server is back",
                            0.01,
                        )
                        stage.history.add("back", took=time.monotonic() - back)
                finally:
                    requests.is_over = True
                    await asking
        finally:
            replica.end()
    stage.history.add("requests", longest=requests.longest_s, answers=dict(requests.answers))
    await stage.drain(BACK_S + 5)


class Requests:
    """Asks a server again and again, and remembers the longest wait."""

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


def look(stage: Stage) -> None:
    back = [event.more["took"] for event in stage.history.of("back")]
    worst = max(back, default=99.0)
    stage.result.figures["worker_back_s"] = round(worst, 2)
    stage.result.must(
        f"workers and servers work ≤ {BACK_S:g} s after the network's return",
        f"{worst:.2f} s of {len(back)}",
        held=worst <= BACK_S,
    )
    for event in stage.history.of("requests"):
        longest, answers = event.more["longest"], event.more["answers"]
        stage.result.figures["longest_request_s"] = round(longest, 2)
        stage.result.must(
            f"no request waits longer than {LONGEST_S:g} s",
            f"{longest:.2f} s",
            held=longest <= LONGEST_S,
        )
        odd = {status: n for status, n in answers.items() if status not in (200, 503)}
        stage.result.must("answers but 200 and 503", f"{odd} of {answers}", held=not odd)
