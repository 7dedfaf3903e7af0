"""Creates jobs in every state, with the statements that workers use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg

from laneway.domain.approval import Analysis, analysis_of
from laneway.domain.claim import Claim
from laneway.domain.job import NewJob, new_job_id
from laneway.domain.job_type_policy import TypeRecord
from laneway.domain.retry import RetryPolicy
from laneway.store import jobs, lanes, leases, workers
from laneway.store.database import run_sync
from laneway.store.leases import MAX_RANK, MIN_RANK, Range, Verdict
from laneway.store.statement import Statement


class JobFactory:
    """One worker and its jobs, on one connection."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self.conn = conn
        self.worker_id = uuid4()

    def run(self, statement: Statement[Any]) -> Any:
        return run_sync(self.conn, statement)

    def submit(self, job_type: str = "greet", **fields: Any) -> UUID:
        job = NewJob(id=new_job_id(), job_type=job_type, **fields)
        return UUID(str(self.run(jobs.submit(job)).id))

    def claim(
        self, job_type: str = "greet", room: int = 1, *, origins: bool = False
    ) -> list[Claim]:
        state = self.run(lanes.read())
        ranges = [Range(job_type, 1, fresh, MIN_RANK, 0, MAX_RANK) for fresh in (True, False)]
        answer = self.run(
            leases.claim(
                self.worker_id,
                state.lane_of(job_type),
                state.version,
                room,
                ranges,
                [room],
                origins=origins,
            )
        )
        return [assignment.claim for assignment in answer.assignments]

    def settle(self, claim: Claim, kind: str = "finish", **fields: Any) -> None:
        self.run(leases.settle([Verdict(claim, kind, **fields)]))

    def running(self, job_type: str = "greet", **fields: Any) -> Claim:
        job_id = self.submit(job_type, **fields)
        (claim,) = self.claim(job_type)
        assert claim.job_id == job_id
        return claim

    def completed(self, job_type: str = "greet", **fields: Any) -> UUID:
        claim = self.running(job_type, **fields)
        self.settle(claim, result='{"ok": true}')
        return claim.job_id

    def analyzed(self, analysis: Analysis, job_type: str = "costly", **fields: Any) -> UUID:
        """A job with this analysis."""
        job_id = self.submit(job_type, **fields)
        (claim,) = self.claim(analysis_of(job_type))
        assert claim.job_id == job_id
        self.settle(claim, "analyzed", result=json.dumps(analysis.to_dict()))
        return job_id

    def failed(self, job_type: str = "greet", **fields: Any) -> UUID:
        claim = self.running(job_type, **fields)
        error = '{"type": "ValueError", "message": "no", "traceback": "here"}'
        self.settle(claim, "giveup", error=error)
        return claim.job_id

    def register(
        self,
        job_types: tuple[str, ...] = ("greet",),
        serves: tuple[str, ...] | None = None,
        name: str = "host:1",
    ) -> UUID:
        info = workers.WorkerInfo(
            id=self.worker_id,
            name=name,
            host="host",
            pid=1,
            code="0",
            job_types=job_types,
            lanes=serves,
            concurrency=4,
        )
        self.run(workers.register(info))
        return self.worker_id

    def publish(self, job_type: str = "greet", arguments: str = "{}", **more: Any) -> None:
        record = TypeRecord(
            name=job_type,
            arguments=arguments,
            lane=None,
            priority=0,
            max_retries=3,
            timeout_s=None,
            isolation="async",
            stale="heartbeat",
            retry=RetryPolicy(),
            **more,
        )
        self.run(workers.publish([record]))

    @contextmanager
    def listening(self) -> Iterator[list[str]]:
        """Collect the notifications that arrive during the block."""
        received: list[str] = []
        with psycopg.connect(
            self.conn.info.dsn, autocommit=True, password=_password(self)
        ) as listener:
            listener.execute("listen laneway")
            yield received
            # NOTIFY delivers in commit order: earlier notifications have arrived before this one.
            self.conn.execute("select pg_notify('laneway', 'end of test')")
            for notice in listener.notifies(timeout=60):
                if notice.payload == "end of test":
                    break
                received.append(notice.payload)


def _password(factory: JobFactory) -> str | None:
    return factory.conn.info.password or None
