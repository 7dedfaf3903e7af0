"""C7: all traffic goes through pgbouncer in transaction mode; leaders are killed."""

from __future__ import annotations

import asyncio
import time

from tests.crash.load import cancel_some, feed
from tests.crash.processes import WorkerProcess
from tests.crash.row_run import RowRun, cancel_load, wait_until
from tests.support.pgbouncer import pgbouncer

JOBS, KILLS = 500, 3
SECONDS = 7.0
POOL_SIZE = 8


async def inject(run: RowRun) -> None:
    with pgbouncer(run.dsn, default_pool_size=POOL_SIZE, max_client_conn=200) as dsn:
        run.worker_dsn = dsn
        run.worker_settings = {"LANEWAY_POOLER": "true"}
        run.client_settings = {"pooler": True}
        workers = [run.start_worker() for _ in range(3)]
        await run.ready(*workers)
        async with run.client() as client:
            load = asyncio.gather(
                feed(run, client, run.count(JOBS, 50) - 10, KILLS, SECONDS / (KILLS + 1)),
                cancel_some(run, client, 10, SECONDS),
            )
            try:
                await _kill_leaders(run, workers)
                await load
            finally:
                await cancel_load(load)
            servers = run.ask(
                "select count(*) from pg_stat_activity"
                " where backend_type = 'client backend' and application_name not like 'crash%%'"
            )
            await run.drain()
        run.result.must(
            f"connections at the server ≤ the pool of {POOL_SIZE}",
            servers,
            held=servers <= POOL_SIZE,
        )
        # Workers deregister through the pooler, so they stop before it does.
        await run.stop_workers()


async def _kill_leaders(run: RowRun, workers: list[WorkerProcess]) -> None:
    began = time.monotonic()
    for i in range(1, KILLS + 1):
        await asyncio.sleep(max(0.0, began + i * SECONDS / (KILLS + 1) - time.monotonic()))

        def leader() -> int | None:
            pid: int | None = run.ask(
                "select w.pid from laneway.leader r join laneway.workers w on w.id = r.holder"
                " where r.held_until > clock_timestamp()"
            )
            return pid

        await wait_until(lambda: leader() is not None, 5, "a worker leads")
        pid = leader()
        for place, worker in enumerate(workers):
            if worker.pid == pid:
                run.kill(worker, worker.pid)
                worker.process.wait()
                workers[place] = run.start_worker()


def check(run: RowRun) -> None:
    leaders = run.history.of("leader")
    overlap = sum(max(0.0, event.more["held_until"] - event.at) for event in leaders)
    run.result.must(
        "seconds with two leaders",
        f"{overlap:.3f} in {len(leaders)} terms",
        held=overlap == 0 and len(leaders) > KILLS - 1,
    )
