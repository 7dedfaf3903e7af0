"""C30: streams stay open while the server's database is restored from a dump, or restarted.

The restore undoes the changes since the dump: jobs that had ended may run again. Every end in the
database must have reached every reader of the job. A stream whose position no longer exists must
end.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

import httpx2
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from laneway.embedded.binaries import find_binaries
from laneway.testing import faults
from tests.crash.row_run import RowRun, wait_until
from tests.crash.rows.c19_streams import ENDS, Reader, Replica, many, serving, token_of

ROUNDS = 3
STREAMS = 39
ITEMS, ITEM_MS = 100, 200
# Event numbers used after the dump, as in hours of work.
LATER = 100_000
READ_S = 60.0
WORKERS = 2

Fault = Callable[[RowRun, Replica, Callable[[], Any]], Any]


async def inject(run: RowRun) -> None:
    token = token_of(run, "viewer")
    replica = Replica(run)
    untold: list[str] = []
    count = 0
    try:
        workers = [run.start_worker() for _ in range(WORKERS)]
        await run.ready(*workers)
        async with httpx2.AsyncClient(timeout=30, limits=many()) as http:
            await serving(http, [replica])
            kinds = [_swap, _clean, _restart]
            for number in range(run.count(ROUNDS, 1)):
                readers = await _round(run, http, replica, token, kinds[number % len(kinds)])
                untold += _untold(run, readers)
                count += len(readers)
    finally:
        replica.end()
    run.result.figures |= {"ends_untold": len(untold), "restored_streams": count}
    run.result.must("ends untold", f"{len(untold)} of {count}", held=not untold)


async def _round(
    run: RowRun,
    http: httpx2.AsyncClient,
    replica: Replica,
    token: str,
    fault: Fault,
) -> list[Follower]:
    async with run.client() as client:
        jobs = [run.job("tracked", items=ITEMS, ms=ITEM_MS) for _ in range(run.count(STREAMS, 8))]
        ids = await run.submit(client, *jobs)
    readers = [Follower(job, [replica.url], token) for job in ids]
    page = DashboardReader(replica.url, token)
    reading = [asyncio.create_task(reader.read(http)) for reader in readers]
    paging = asyncio.create_task(page.read(http))

    async def heard(least: int) -> None:
        await wait_until(lambda: all(len(r.heard) >= least for r in readers), 60, "all read", 0.05)

    try:
        await heard(3)
        await fault(run, replica, lambda: heard(10))
        still = sum(reader.heard[-1][1] not in ENDS for reader in readers)
        run.result.must("streams open at the fault", still, held=still > len(readers) // 2)
        await run.drain_all(READ_S)
        _, late = await asyncio.wait(reading, timeout=30)
        # The first stream of a page resumes nothing.
        resyncs = page.opened - page.resumed - 1
        run.result.must(
            f"pages that had to be read again after {fault.__name__[1:]}",
            f"{resyncs}, {page.resumed} resumed",
            held=fault is _restart or resyncs > 0,
        )
    finally:
        for task in (*reading, paging):
            task.cancel()
        await asyncio.gather(*reading, paging, return_exceptions=True)
    run.result.must("readers at the end", f"{len(late)} late", held=not late)
    return readers


class Follower(Reader):
    """Follows one job; a stream that ends early is reopened at the reader's position."""

    async def _follow(self, answer: Any) -> None:
        event: dict[str, str] = {}
        async for line in answer.aiter_lines():
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
                continue
            if "data" in event:
                assert json.loads(event["data"])["id"] == self.job, "an event of another job"
                self.heard.append((event["id"], event["event"]))  # type: ignore[arg-type]
                if event["event"] in ENDS:
                    return
            event = {}


class DashboardReader:
    """Follows all jobs, as the dashboard does."""

    def __init__(self, url: str, token: str) -> None:
        self._url = f"{url}/events?topic=jobs"
        self._token = token
        self.opened = self.resumed = 0

    async def read(self, http: httpx2.AsyncClient) -> None:
        last: str | None = None
        while True:
            headers = {"Authorization": f"Bearer {self._token}"}
            if last is not None:
                headers["Last-Event-ID"] = last
            try:
                async with http.stream("GET", self._url, headers=headers) as answer:
                    async for line in answer.aiter_lines():
                        name, _, value = line.partition(": ")
                        if name == "id":
                            last = value
                        elif name == "data" and '"resumed":' in value:
                            self.opened += 1
                            self.resumed += json.loads(value)["resumed"]
            except httpx2.HTTPError:
                pass
            await asyncio.sleep(0.05)


def _untold(run: RowRun, readers: list[Follower]) -> list[str]:
    ended = {
        job
        for (job,) in run.conn.execute(
            "select id::text from laneway.jobs_view"
            " where status in ('completed', 'failed', 'cancelled')"
        )
    }
    received = {reader.job for reader in readers if reader.heard and reader.heard[-1][1] in ENDS}
    return [reader.job for reader in readers if reader.job in ended - received]


# Faults -------------------------------------------------------------------------------------------


async def _swap(run: RowRun, replica: Replica, work: Callable[[], Any]) -> None:
    """Restore into a database with another name, and rename it."""
    dump = await asyncio.to_thread(_dump, run)
    await _work_on(run, work)
    await asyncio.to_thread(_restore_beside, run, dump)
    run.fault(kind="swap")


async def _clean(run: RowRun, replica: Replica, work: Callable[[], Any]) -> None:
    """Restore over the existing database."""
    dump = await asyncio.to_thread(_dump, run)
    await _work_on(run, work)
    await asyncio.to_thread(_restore_over, run, replica, dump)
    run.fault(kind="clean")


async def _restart(run: RowRun, replica: Replica, work: Callable[[], Any]) -> None:
    run.conn.close()
    await asyncio.to_thread(run.postgres.restart, "immediate")
    run.fault(kind="restart")
    await work()


async def _work_on(run: RowRun, work: Callable[[], Any]) -> None:
    """Run jobs between the dump and the restore, which undoes them."""
    run.conn.execute(
        "select setval('laneway.events_id_seq', nextval('laneway.events_id_seq') + %s)", [LATER]
    )
    await work()


def _restore_over(run: RowRun, replica: Replica, dump: str) -> None:
    """Restore in place. It needs every lock, so workers are stopped; streams stay open."""
    run.conn.close()
    roots = [replica.process.pid, *(worker.pid for worker in run.workers)]
    stopped = [pid for root in roots for pid in faults.tree(root)]
    faults.pause(*stopped)
    try:
        with psycopg.connect(_admin(run), autocommit=True) as admin:
            admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s",
                [_database(run)],
            )
        given = ("--clean", "--if-exists", "--single-transaction", "-d", _database(run), dump)
        _run(run, "pg_restore", *given)
    finally:
        faults.resume(*stopped)


def _restore_beside(run: RowRun, dump: str) -> None:
    run.conn.close()
    name = _database(run)
    with psycopg.connect(_admin(run), autocommit=True) as admin:
        admin.execute(f'create database "{name}_restored" template template0')
        _run(run, "pg_restore", "-d", f"{name}_restored", dump)
        admin.execute(f'drop database "{name}" with (force)')
        admin.execute(f'alter database "{name}_restored" rename to "{name}"')


def _dump(run: RowRun) -> str:
    path = str(run.sink / f"dump-{run.result.faults}")
    _run(run, "pg_dump", "-Fc", "-f", path, _database(run))
    return path


def _run(run: RowRun, program: str, *arguments: str) -> None:
    given = conninfo_to_dict(run.dsn)
    environment = {
        **os.environ,
        "PGHOST": str(given["host"]),
        "PGPORT": str(given["port"]),
        "PGUSER": str(given["user"]),
        "PGPASSWORD": str(given["password"]),
    }
    command = [str(find_binaries().directory / program), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{program}: {done.stderr[-2000:]}")


def _database(run: RowRun) -> str:
    return str(conninfo_to_dict(run.dsn)["dbname"])


def _admin(run: RowRun) -> str:
    return make_conninfo(run.dsn, dbname="postgres")


def check(run: RowRun) -> None:
    run.result.jobs = run.ask("select count(*) from laneway.jobs")
