"""Latency of an application while a job inside it keeps a processor busy."""

from __future__ import annotations

import asyncio
import time
from statistics import median

from bench.api.embedded import IN_PROCESS, IN_THREAD
from bench.api.http_load import get, send_requests
from bench.api.replica import serving
from bench.figures import Figures
from bench.scale import Scale, log
from bench.server import Database, Server
from laneway import Laneway
from laneway.domain.states import Status

APP = ("-m", "bench.api.embedded")
# The pause of a client between two requests, as of a person.
PAUSE_S = 0.005


def _burn(database: Database, job_type: str, seconds: float) -> None:
    """Submit a job that runs for `seconds`; return once it runs."""

    async def submit() -> None:
        async with Laneway(database.dsn) as lw:
            job = await lw.submit(job_type, {"seconds": seconds})
            deadline = time.monotonic() + 30
            while (await lw.get(job.id)).status is not Status.RUNNING:
                assert time.monotonic() < deadline, f"{job_type} did not start"
                await asyncio.sleep(0.05)

    asyncio.run(submit())


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    database = server.database("bench_responsive")
    p99: dict[str, list[float]] = {"idle": [], IN_PROCESS: [], IN_THREAD: []}
    for _ in range(scale.responsive_runs):
        for kind, found in p99.items():
            # A separate process for each run, so that no earlier job is left.
            with serving(database, APP) as application:
                send_requests(application.port, get("/ping"), clients=1, seconds=0.5)
                if kind != "idle":
                    _burn(database, kind, 5 * scale.responsive_s)
                found.append(
                    send_requests(
                        application.port,
                        get("/ping"),
                        clients=1,
                        seconds=scale.responsive_s,
                        pause=PAUSE_S,
                    ).p99
                )
    rounded = {kind: [round(ms, 2) for ms in found] for kind, found in p99.items()}
    log(f"responsive: p99 in ms {rounded}")
    idle = median(p99["idle"])
    figures.put(
        http_p99_with_cpu_process_vs_idle=median(p99[IN_PROCESS]) / idle,
        http_p99_with_cpu_thread_vs_idle=median(p99[IN_THREAD]) / idle,
    )
    server.drop(database)
