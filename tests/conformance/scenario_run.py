"""Run one scenario and list its failures."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any
from uuid import UUID

from laneway import Job
from laneway.client import JobOptions
from laneway.testing.proxy import Proxy
from tests.conformance.environment import SHARED, Environment, ScenarioFailed, read_log, wait_until
from tests.conformance.processes import Process, ServerProcess
from tests.conformance.scenario import PlannedJob, Scenario

BY = "conformance"
TICK_S = 0.02
LOOKS = 2000
TERMINAL = ("completed", "failed", "cancelled")


class ScenarioRun:
    """One running scenario: its jobs, its processes, its lane."""

    def __init__(self, env: Environment, scenario: Scenario, addresses: str) -> None:
        self._env = env
        self._scenario = scenario
        self._addresses = addresses
        self._lane = scenario.slug if scenario.has_own_lane else SHARED
        self._log = env.log_of(scenario.slug if scenario.has_own_worker else SHARED)
        self._waiting = [job for job in scenario.jobs for _ in range(job.count)]
        self._jobs: list[tuple[PlannedJob, UUID]] = []
        self._workers: list[Process] = []
        self._paused: list[Process] = []
        self._paused_at: datetime | None = None
        self._stopped: list[Process] = []
        self._servers: list[ServerProcess] = []
        self._proxy: Proxy | None = None

    async def run(self) -> list[str]:
        """Run the scenario; return its failures, none if the worker conforms."""
        try:
            async with AsyncExitStack() as stack:
                await self._open(stack)
                acts = self._scenario.acts
                if not any(act.split()[0] == "submit" for act in acts):
                    await self._submit("")
                for act in acts:
                    await self._do(act)
                ended = [await self._ended(job_id) for _, job_id in self._jobs]
                return self._compare(ended)
        except ScenarioFailed as broken:
            return [str(broken), *self._diagnostics()]

    async def _open(self, stack: AsyncExitStack) -> None:
        if not self._scenario.has_own_worker:
            return
        stack.callback(self._end_all)
        env = self._env
        if env.is_remote and self._scenario.has_own_servers:
            for _ in range(self._scenario.servers):
                self._servers.append(await env.start_server())
            self._addresses = ",".join(server.address for server in self._servers)
        if self._scenario.is_cut:
            host, _, port = self._addresses.partition(":")
            self._proxy = await stack.enter_async_context(Proxy(host, int(port)))
            self._addresses = f"{self._proxy.host}:{self._proxy.port}"
        await self._start("worker")

    def _end_all(self) -> None:
        for process in (*self._workers, *self._paused, *self._stopped, *self._servers):
            process.end()

    # Acts -------------------------------------------------------------------------------------

    async def _do(self, act: str) -> None:
        verb, _, rest = act.partition(" ")
        if verb == "go":
            rest = rest.removeprefix("on ")
        acts: dict[str, Callable[[str], Awaitable[None]]] = {
            "submit": self._submit,
            "until": self._until,
            "exactly": self._exactly,
            "open": self._open_gate,
            "kill": self._kill,
            "stop": self._stop,
            "pause": self._pause,
            "go": self._go_on,
            "start": self._start,
            "gone": self._gone,
            "cut": self._cut,
            "lapse": self._lapse,
            "cancel": self._cancel,
            "approve": self._approve,
            "send": self._send,
            "lane": self._change_lane,
        }
        await acts[verb](rest)

    async def _submit(self, which: str) -> None:
        if which:
            chosen = [self._scenario.jobs[int(number)] for number in which.split()]
        else:
            chosen = self._waiting
        if len(chosen) > 10:
            many = [(self._type(job), self._payload(job), job.options) for job in chosen]
            made = [handle.id for handle in await self._env.lw.submit_many(many)]
            self._jobs += zip(chosen, made, strict=True)
            return
        for job in chosen:
            self._jobs.append((job, await self._submit_one(job)))

    async def _submit_one(self, job: PlannedJob) -> UUID:
        if job.by == "client":
            options: JobOptions = {**job.options}
            if job.after:
                options["after"] = [self._jobs[number][1] for number in job.after]
            handle = await self._env.lw.submit(self._type(job), self._payload(job), **options)
            return handle.id
        row = self._env.conn.execute(
            "select job_id from laneway.submit(job_type => %s, payload => %s, wake => true)",
            [self._type(job), json.dumps(self._payload(job))],
        ).fetchone()
        assert row is not None
        made: UUID = row[0]
        return made

    def _type(self, job: PlannedJob) -> str:
        return f"{self._lane}.{job.handler}"

    def _payload(self, job: PlannedJob) -> dict[str, Any]:
        if "gate" not in job.payload:
            return job.payload
        return {**job.payload, "gate": self._gate(job.payload["gate"])}

    def _gate(self, name: str) -> str:
        """The name of a gate: scenarios that share a worker do not share gates."""
        return f"{self._scenario.slug}.{name}"

    async def _exactly(self, condition: str) -> None:
        word, _, number = condition.rpartition(" ")
        if self._count(word) != int(number):
            raise ScenarioFailed(f"{self._count(word)} lines {word!r}, not {number}")

    async def _until(self, condition: str) -> None:
        field, is_field, value = condition.partition(" = ")
        if is_field:
            expected = json.loads(value)
            for _, job_id in self._jobs:
                await self._until_field(job_id, field, expected)
            return
        word, _, number = condition.rpartition(" ")
        await wait_until(
            lambda: self._count(word) >= int(number), f"{number} lines {word!r} of the handlers"
        )

    async def _until_field(self, job_id: UUID, field: str, expected: Any) -> None:
        found = None
        for _ in range(LOOKS):
            found = value_of(await self._env.lw.get(job_id), field)
            if found == expected:
                return
            await asyncio.sleep(TICK_S)
        raise ScenarioFailed(f"{field} is {found!r} and not {expected!r}")

    async def _open_gate(self, gate: str) -> None:
        (self._env.home / self._gate(gate)).touch()

    async def _kill(self, what: str) -> None:
        victim = (self._workers if what == "worker" else self._servers)[0]
        victim.send(signal.SIGKILL)
        victim.end()
        if what == "worker":
            self._workers.remove(victim)

    async def _stop(self, what: str) -> None:
        self._stopped.append(self._workers.pop(0))
        self._stopped[-1].terminate()

    async def _gone(self, what: str) -> None:
        worker = self._stopped[-1]
        await wait_until(lambda: worker.code is not None, "the worker that was stopped has ended")
        if worker.code != 0:
            raise ScenarioFailed(f"the worker ended with code {worker.code}:\n{worker.output()}")

    async def _pause(self, what: str) -> None:
        worker = self._workers.pop(0)
        worker.send(signal.SIGSTOP)
        self._paused.append(worker)
        row = self._env.conn.execute("select clock_timestamp()").fetchone()
        assert row is not None
        (self._paused_at,) = row
        if self._env.is_remote:
            # Until then the server may renew its leases and give it jobs.
            await wait_until(lambda: not self._env.has_stream(worker), "its stream is closed")
        else:
            # A renewal in progress would use the lane's new lease time.
            await wait_until(lambda: not self._env.renewed(self._lane), "the last renewal is old")

    async def _go_on(self, what: str) -> None:
        for worker in self._paused:
            worker.send(signal.SIGCONT)

    async def _start(self, what: str) -> None:
        if what == "server":
            gone = self._servers.pop(0)
            self._servers.append(await self._env.start_server(gone.port))
            return
        self._workers.append(
            await self._env.start_worker(self._scenario, [self._lane], self._addresses)
        )

    async def _cut(self, _: str) -> None:
        assert self._proxy is not None
        await wait_until(
            lambda: self._proxy is not None and self._proxy.connections > 0, "a connection"
        )
        before = self._streams()
        self._proxy.cut()
        # Until the server notices, it may send a job into the closed connection.
        await wait_until(lambda: bool(self._streams() - before), "the worker to come back")

    def _streams(self) -> set[UUID]:
        """The streams of the scenario's workers."""
        rows = self._env.conn.execute(
            "select session from laneway.workers where %s = any (lanes) and session is not null",
            [self._lane],
        )
        return {row[0] for row in rows}

    async def _lapse(self, _: str) -> None:
        # At once: jobs that are lost together are not charged.
        self._env.conn.execute(
            "update laneway.lease set lease_until = clock_timestamp() - interval '1 second'"
            " where seq in (select seq from laneway.jobs where id = any (%s))"
            # Not of another worker: on a busy machine the leases may have lapsed by time.
            " and claimed_at < coalesce(%s, timestamptz 'infinity')",
            [[job_id for _planned, job_id in self._jobs], self._paused_at],
        )

    async def _cancel(self, _: str) -> None:
        for _planned, job_id in self._jobs:
            await self._env.lw.cancel(job_id, "cancelled by the suite")

    async def _approve(self, _: str) -> None:
        for _planned, job_id in self._jobs:
            await self._env.lw.approve(job_id, by=BY)

    async def _send(self, event: str) -> None:
        name, key, payload = event.split(" ", 2)
        # Gone before the next run of the suite in this database.
        await self._env.lw.send_event(name, key=key, payload=json.loads(payload), retention=60)

    async def _change_lane(self, change: str) -> None:
        field, _, value = change.partition(" = ")
        self._env.change_lane(self._lane, field, json.loads(value))

    # What is seen -----------------------------------------------------------------------------

    def _lines(self) -> list[dict[str, Any]]:
        mine = {str(job_id) for _, job_id in self._jobs}
        return [line for line in read_log(self._log) if line["job"] in mine]

    def _count(self, word: str) -> int:
        return sum(line["what"] == word for line in self._lines())

    async def _ended(self, job_id: UUID) -> Job:
        for _ in range(LOOKS):
            job = await self._env.lw.get(job_id)
            if job.status in TERMINAL:
                return job
            await asyncio.sleep(TICK_S)
        raise ScenarioFailed(f"a job is still {job.status}, in attempt {job.attempt}")

    def _compare(self, ended: list[Job]) -> list[str]:
        wrong: Counter[str] = Counter()
        for (planned, _), job in zip(self._jobs, ended, strict=True):
            for field, expected in {**self._scenario.see, **planned.see}.items():
                found = value_of(job, field)
                if found != (None if expected == "null" else expected):
                    error = f" ({job.error.type}: {job.error.message})" if job.error else ""
                    wrong[f"{planned.handler}: {field} is {found!r}, not {expected!r}{error}"] += 1
        failures = [text if n == 1 else f"{text} ({n} jobs)" for text, n in wrong.items()]
        lines = self._lines()
        counts = Counter(line["what"] for line in lines)
        for word, number in self._scenario.lines.items():
            if counts[word] != number:
                failures.append(f"{counts[word]} lines {word!r}, not {number}")
        begun = [line["note"] for line in lines if line["what"] == "begin"]
        if self._scenario.order and begun != list(self._scenario.order):
            failures.append(f"began in the order {begun}, not {list(self._scenario.order)}")
        if self._scenario.alone is not None:
            words = [line["what"] for line in lines if line["what"] in self._scenario.alone]
            if words != list(self._scenario.alone) * (len(words) // 2):
                failures.append(f"not one at a time: {words}")
        return [*failures, *self._diagnostics()] if failures else []

    def _diagnostics(self) -> list[str]:
        """Log lines and outputs that explain a failure."""
        lines = [f"{line['what']} {line['attempt']}" for line in self._lines()[:30]]
        workers = (*self._workers, *self._paused, *self._stopped)
        outputs = [f"{one.log.name}: {one.output(1500)}" for one in workers if one.output()]
        return [f"the handlers wrote: {', '.join(lines)}", *outputs]


def value_of(job: Job, field: str) -> Any:
    """A field of a job by its path, or a computed field."""
    match field:
        case "outcomes":
            return [attempt.outcome for attempt in job.attempts]
        case "log":
            return [f"{line.level} {line.message}" for one in job.attempts for line in one.log]
        case "size of result":
            return len(json.dumps(job.result, ensure_ascii=False).encode())
        case "cancel_requested":
            return job.cancel_requested_at is not None
    value: Any = job.to_dict()
    for part in field.split("."):
        value = value[part] if isinstance(value, dict) else None
    return value
