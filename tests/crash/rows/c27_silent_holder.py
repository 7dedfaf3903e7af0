"""C27: servers and workers go silent while they lock the row of a lane, a limit or the gate.

A connection goes silent as a change is committed: PostgreSQL waits for it and keeps all its locks.
The server or worker that made the change continues, or dies without closing the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import time
from collections.abc import Callable

import httpx2

from laneway import Laneway
from laneway.testing import faults
from laneway.testing.proxy import Proxy
from tests.crash.processes import ROOT, worker_environment
from tests.crash.row_run import RowRun, wait_until
from tests.crash.rows.c19_streams import Replica, serving, token_of
from tests.support.server_address import address, through

ROUNDS = 3
RESUME_S = 5.0
PATIENCE_S = 40.0
COMMANDS = {"explain": ("jobs", "explain", "ID"), "doctor": ("doctor",)}
# After a second the holder of a lock counts as a blocker.
ASK_S = (1.1, 0.7)
_PREPARED = """
import sys
import laneway.control.explain, laneway.control.health, laneway.app.open_database
from laneway.cli.main import main
print("ready", flush=True)
sys.argv = ["laneway", *sys.stdin.readline().split()]
sys.exit(main())
"""
# The end of our transactions, not the same word in another statement.
COMMIT = b"commit\x00"
# A change over HTTP, and a job that cannot be claimed meanwhile.
CHANGES = {
    "lane": ("PATCH", "/admin/workers/lanes/narrow", {"poll_interval_ms": 300}, "narrow"),
    "limit": ("PUT", "/admin/limits/scarce", {"max_concurrent": 4}, "limited"),
    "gate": ("POST", "/admin/workers/pause", {}, "narrow"),
}


async def inject(run: RowRun) -> None:
    run.app = "tests.crash.policy_app:lw"
    token = token_of(run, "operator")
    async with Proxy(*address(run.dsn)) as proxy:
        replica = Replica(run, through(proxy, run.dsn))
        try:
            worker = run.start_worker()
            await run.ready(worker)
            async with run.client() as client, httpx2.AsyncClient(timeout=60) as http:
                http.headers["Authorization"] = f"Bearer {token}"
                for _ in range(run.count(ROUNDS)):
                    await serving(http, [replica])
                    for kind in CHANGES:
                        asked = await _prepare(run)
                        asking = await _silence(proxy, http, replica, kind)
                        await _resumed(run, client, kind, CHANGES[kind][3], asked)
                        with contextlib.suppress(httpx2.HTTPError):
                            await asking
                    asked = await _prepare(run)
                    asking = await _silence(proxy, http, replica, "lane")
                    replica.kill()
                    await _resumed(run, client, "dead server", "narrow", asked)
                    await asyncio.gather(asking, return_exceptions=True)
                    replica.start()
        finally:
            replica.end()
        for number in range(run.count(ROUNDS)):
            await _worker(run, proxy, f"tune-{number}")
        await run.drain(RESUME_S + 5)


async def _silence(
    proxy: Proxy, http: httpx2.AsyncClient, replica: Replica, kind: str
) -> asyncio.Task[httpx2.Response]:
    """Request a change from the server, and drop its commit."""
    method, path, body, _ = CHANGES[kind]
    # The server works, and its connections are open.
    (await http.get(f"{replica.url}/me")).raise_for_status()
    proxy.swallow_when(COMMIT)
    asking = asyncio.create_task(http.request(method, replica.url + path, json=body))
    async with asyncio.timeout(PATIENCE_S):
        await proxy.swallowed.wait()
    return asking


async def _resumed(run: RowRun, client: Laneway, kind: str, job_type: str, asked: Asked) -> None:
    """Submit a job that needs the locked row, and wait until it runs."""
    began, at = time.monotonic(), run.clock()
    run.fault(kind=kind)
    (job,) = await run.submit(client, run.job(job_type, ms=1))
    naming = asyncio.create_task(_named(run, job, asked))
    try:
        await wait_until(_claimed(run, job), PATIENCE_S, f"a claim with the {kind} held", 0.01)
    finally:
        took = time.monotonic() - began
        named = await naming
    run.history.add("resumed", kind=kind, took=took, named=named, at=at)


def _claimed(run: RowRun, job: str) -> Callable[[], bool]:
    asked = "select attempt > 0 from laneway.jobs_view where id = %s"
    return lambda: bool(run.ask(asked, job))


async def _named(run: RowRun, job: str, asked: Asked) -> list[str]:
    """Return the commands that name the blocker by pid, application and age."""
    answers: dict[str, list[asyncio.Task[str]]] = {name: [] for name in COMMANDS}
    pid, application = 0, ""
    for delay_s in ASK_S:
        await asyncio.sleep(delay_s)
        # Other connections are idle in a transaction only briefly.
        pid, application = run.conn.execute(
            "select pid, application_name from pg_stat_activity"
            " where state = 'idle in transaction' and application_name like 'laneway%'"
            " and state_change < clock_timestamp() - interval '0.5 s' limit 1"
        ).fetchone() or (pid, application)
        for name, command in COMMANDS.items():
            words = (job if word == "ID" else word for word in command)
            answers[name].append(asyncio.create_task(asked[name].pop().answer(*words)))
    wanted = re.compile(rf"pid {pid} \({re.escape(application)}, .* for \d+ ?s")
    outputs = {name: " ".join(await asyncio.gather(*each)) for name, each in answers.items()}
    named = [name for name, text in outputs.items() if wanted.search(text)]
    if len(named) < len(COMMANDS):
        run.history.add("unnamed", wanted=wanted.pattern, outputs=outputs)
    return named


class Prepared:
    """A command line that is already loaded: a busy machine needs seconds for that."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, run: RowRun) -> Prepared:
        process = await asyncio.create_subprocess_exec(
            *faults.tied([sys.executable, "-c", _PREPARED]),
            cwd=ROOT,
            env=worker_environment(run.dsn, run.sink),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        return cls(process)

    async def answer(self, *command: str) -> str:
        """Run the command; return its output in one line."""
        output, _ = await self._process.communicate(f"{' '.join(command)}\n".encode())
        return " ".join(output.decode().split())


Asked = dict[str, list[Prepared]]


async def _prepare(run: RowRun) -> Asked:
    return {name: [await Prepared.start(run) for _ in ASK_S] for name in COMMANDS}


async def _worker(run: RowRun, proxy: Proxy, gate: str) -> None:
    """Let a worker die silently as it changes a lane; another worker must claim there."""
    near = run.worker_dsn
    for worker in run.workers:
        faults.end_all(worker.tree())
    run.worker_dsn = through(proxy, run.dsn)
    doomed = run.start_worker()
    await run.ready(doomed)
    run.worker_dsn = near
    async with run.client() as client:
        await run.submit(client, run.job("tuner", lane="narrow", poll_ms=260, gate=gate))
        running = "select count(*) = 1 from laneway.lease where job_type = 'tuner'"
        await wait_until(lambda: bool(run.ask(running)), 30, "the tuner runs")
        other = run.start_worker()
        await run.ready(other)
        asked = await _prepare(run)
        proxy.swallow_when(COMMIT)
        (run.sink / gate).touch()
        async with asyncio.timeout(PATIENCE_S):
            await proxy.swallowed.wait()
        faults.kill(*doomed.tree())
        await _resumed(run, client, "dead worker", "narrow", asked)


def check(run: RowRun) -> None:
    resumed = run.history.of("resumed")
    took = [event.more["took"] for event in resumed]
    worst = max(took, default=99.0)
    kinds = {event.more["kind"] for event in resumed}
    run.result.figures["claims_resume_s"] = round(worst, 2)
    run.result.must(
        f"claims go on ≤ {RESUME_S:g} s after the silence",
        f"{worst:.2f} s of {len(took)}",
        held=worst <= RESUME_S and kinds == {*CHANGES, "dead server", "dead worker"},
    )
    # A busy machine may be too slow for one round, but not for all.
    named = {(event.more["kind"], command) for event in resumed for command in event.more["named"]}
    unnamed = [f"{kind}: {c}" for kind in sorted(kinds) for c in COMMANDS if (kind, c) not in named]
    run.must_in_time("blockers that explain or doctor did not name", unnamed, held=not unnamed)
