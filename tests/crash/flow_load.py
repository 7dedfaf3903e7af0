"""Submits flows of random shape in step with the faults."""

from __future__ import annotations

import asyncio
import json
import math
import time
from typing import Any

import psycopg

from laneway.domain.job import new_job_id
from tests.crash.flow_plans import PlannedFlow, plan_flow
from tests.crash.row_run import RowRun

_CREATE = "select laneway.create_flow(%s, %s)"
_ADD = """
select count(*) from laneway.submit_batch(
    %s, %s::text::jsonb, %s, %s::text::jsonb, p_after => %s::text::jsonb, p_flow => %s)
"""


class Pace:
    """Keeps a load behind the next fault, so that a late fault finds work too."""

    def __init__(self, run: RowRun, total: int, faults: int, every_s: float) -> None:
        self._run = run
        self._total, self._faults, self._every_s = total, faults, every_s
        run.last_fault = time.monotonic()

    async def keep(self, made: int) -> None:
        """Wait while more is made than the faults so far allow."""
        while True:
            since = (time.monotonic() - self._run.last_fault) / self._every_s
            allowed = (self._run.result.faults + 1 - math.exp(-since)) / self._faults
            if made / self._total <= allowed:
                return
            await asyncio.sleep(0.02)


class FlowLoad:
    """Flows of one row."""

    def __init__(self, run: RowRun) -> None:
        self._run = run
        self._planned = 0

    async def feed(self, total: int, faults: int, every_s: float) -> None:
        """Submit flows until so many are acknowledged."""
        pace = Pace(self._run, total, faults, every_s)
        made = 0
        while made < total:
            try:
                async with await psycopg.AsyncConnection.connect(self._run.dsn) as conn:
                    while made < total:
                        await self._submit(conn)
                        made += 1
                        await pace.keep(made)
            except psycopg.OperationalError:
                await asyncio.sleep(0.05)

    async def _submit(self, conn: psycopg.AsyncConnection[Any]) -> None:
        """Submit a flow in one transaction; without an answer it may exist or not."""
        run = self._run
        self._planned += 1
        flow = plan_flow(run.load_random, f"{run.result.row}-{self._planned}")
        run.expected |= flow.ends()
        ids = [new_job_id() for _ in flow.jobs]
        flow_id = new_job_id()
        after = [
            {"after": [str(ids[n]) for n in job.parents], "after_failure": job.rule, "name": job.op}
            for job in flow.jobs
        ]
        types = sorted({job.job_type for job in flow.jobs})
        self._note(flow, "invoke")
        try:
            async with conn.transaction():
                await conn.execute(_CREATE, [flow_id, flow.name])
                payloads = json.dumps([job.payload for job in flow.jobs])
                kinds = json.dumps([{"job_type": name} for name in types])
                kind_of = [types.index(job.job_type) for job in flow.jobs]
                given = [ids, payloads, kind_of, kinds, json.dumps(after), flow_id]
                await conn.execute(_ADD, given)
                await conn.execute("select pg_notify('laneway', 'wake *')")
        except psycopg.OperationalError:
            self._note(flow, "info")
            raise
        self._note(flow, "ok", [str(each) for each in ids])

    def _note(self, flow: PlannedFlow, phase: str, ids: list[str] | None = None) -> None:
        for n, job in enumerate(flow.jobs):
            self._run.history.add(
                "submit",
                ids[n] if ids else None,
                op=job.op,
                phase=phase,
                unique_key=None,
                t=time.monotonic(),
            )
