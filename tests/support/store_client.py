"""A client of the database for tests: the store's statements as methods, and direct queries."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID, uuid4

import psycopg

from laneway.domain.claim import Claim
from laneway.domain.job import NewJob, new_job_id
from laneway.domain.verb_rules import CancelOnly
from laneway.store import jobs, lanes, leases
from laneway.store.database import run_sync
from laneway.store.leases import ClaimAnswer, LogEntry, Range, Report, Verdict, WriteResult
from laneway.store.statement import Statement

T = TypeVar("T")
Conn = psycopg.Connection[tuple[Any, ...]]
PLACES = ("ready", "delayed", "key_waiters", "awaiting", "waiting", "lease", "outcome")
PATIENCE = 60.0
# Stores a row without triggers, as an older version without the check may have done.
PAST_CHECKS = "set session_replication_role = replica; {}; reset session_replication_role"
BLOCKED = "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s"


class StoreClient:
    """One connection and one worker id."""

    def __init__(
        self, dsn: str, *, prepare_threshold: int | None = 5, conn: Conn | None = None
    ) -> None:
        self.dsn = dsn
        self.conn: Conn = conn or psycopg.connect(
            dsn, autocommit=True, application_name="tests", prepare_threshold=prepare_threshold
        )
        self.worker = uuid4()
        self._thread = ThreadPoolExecutor(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        if self.conn.info.transaction_status and not self.conn.closed:
            self.conn.cancel_safe()
        self._thread.shutdown()
        self.conn.close()

    @property
    def pid(self) -> int:
        return self.conn.info.backend_pid

    # -- queries ------------------------------------------------------------------------------

    def run(self, statement: Statement[T]) -> T:
        return run_sync(self.conn, statement)

    def rows(self, query: str, *params: Any) -> list[tuple[Any, ...]]:
        cursor = self.conn.execute(query.encode(), params or None)
        return cursor.fetchall() if cursor.description else []

    def one(self, query: str, *params: Any) -> Any:
        row = self.rows(query, *params)[0]
        return row[0] if len(row) == 1 else row

    def do(self, query: str, *params: Any) -> int:
        return self.conn.execute(query.encode(), params or None).rowcount

    def places(self, seq: int) -> list[str]:
        """The state tables with a row of the job: exactly one for every job."""
        return [
            t for t in PLACES if self.one(f"select count(*) from laneway.{t} where seq = %s", seq)
        ]

    def row(self, table: str, seq: int) -> dict[str, Any]:
        cursor = self.conn.execute(f"select * from laneway.{table} where seq = %s".encode(), [seq])
        assert cursor.description is not None
        (row,) = cursor.fetchall()
        return dict(zip((c.name for c in cursor.description), row, strict=True))

    def slots_agree(self) -> bool:
        """Whether the slot counters match the leases."""
        return bool(
            self.one(
                "select not exists (select lane, worker_id, count(*)::integer from laneway.lease"
                " group by 1, 2 except select lane, worker_id, running from laneway.slot_usage)"
                " and (select coalesce(sum(running), 0) from laneway.slot_usage)"
                " = (select count(*) from laneway.lease)"
            )
        )

    def limits_agree(self) -> bool:
        """Whether the limit counters match the leases and self-finished jobs."""
        return not self.rows(
            "select 1 from (select m as limit_name, l.worker_id, count(*) as n"
            "   from (select worker_id, limits from laneway.lease"
            "         union all select worker_id, limits from laneway.self_finished) l,"
            "        unnest(l.limits) m group by 1, 2) held"
            " full join laneway.limit_usage u using (limit_name, worker_id)"
            " where coalesce(held.n, 0) <> coalesce(u.running, 0)"
        )

    def keys_agree(self) -> bool:
        """Whether running jobs hold their keys, and the first waiter of each free key is ready."""
        return not self.rows(
            "select 1 from laneway.lease l left join laneway.key_holders h"
            "    on h.workspace = l.workspace and h.concurrency_key = l.concurrency_key"
            " where l.concurrency_key is not null and h.seq is distinct from l.seq"
            " union all"
            " select 1 from laneway.key_waiters w left join laneway.key_holders h"
            "    on h.workspace = w.workspace and h.concurrency_key = w.concurrency_key"
            " where h.seq is null and not exists (select from laneway.ready r"
            "    join laneway.jobs j on j.seq = r.seq where r.job_type = w.job_type"
            "    and j.workspace = w.workspace and j.concurrency_key = w.concurrency_key)"
            " union all"
            " select 1 from laneway.key_holders h"
            " where not exists (select from laneway.lease l where l.seq = h.seq)"
            "   and not exists (select from laneway.self_finished f where f.seq = h.seq)"
        )

    # -- statements --------------------------------------------------------------------------------

    def submit(self, job_type: str = "t", *, payload: object = None, **more: Any) -> int:
        """Submits a job; returns its sequence number."""
        job = NewJob(id=new_job_id(), job_type=job_type, payload=json.dumps(payload or {}), **more)
        answer = self.run(jobs.submit(job))
        return self.seq_of(answer.id)

    def seq_of(self, job_id: UUID) -> int:
        return int(self.one("select seq from laneway.jobs where id = %s", job_id))

    def id_of(self, seq: int) -> UUID:
        found = self.one("select id from laneway.jobs where seq = %s", seq)
        assert isinstance(found, UUID)
        return found

    def version(self) -> int:
        return self.run(lanes.read()).version

    def claim(
        self,
        room: int = 100,
        types: Iterable[str] = ("t",),
        *,
        lane: str = "default",
        caps: Sequence[int] | None = None,
        ranges: Sequence[Range] | None = None,
        version: int | None = None,
    ) -> ClaimAnswer:
        return self.run(
            leases.claim(
                self.worker,
                lane,
                self.version() if version is None else version,
                room,
                ranges or [r for t in types for r in whole(t)],
                caps or [room],
            )
        )

    def claimed(self, room: int = 100, types: Iterable[str] = ("t",), **more: Any) -> list[Claim]:
        return [a.claim for a in self.claim(room, types, **more).assignments]

    def running(self, job_type: str = "t", **more: Any) -> Claim:
        """Submits and claims a job."""
        seq = self.submit(job_type, **more)
        (claim,) = self.claimed(
            1, [job_type], lane=self.one("select laneway.lane_of(%s)", job_type)
        )
        assert claim.seq == seq
        return claim

    def make_due(self) -> None:
        """Makes all delayed jobs due now."""
        self.do(
            "with due as (delete from laneway.delayed returning *)"
            " insert into laneway.ready (seq, job_type, fresh, rank, attempt, retries, sealed)"
            " select seq, job_type, false, rank, attempt, retries, sealed from due"
        )

    def settle(self, claim: Claim, kind: str, **more: Any) -> WriteResult | None:
        """The result for this job; None for a plainly accepted finish."""
        answers = [a for a in self.settled(claim, kind, **more) if a.seq == claim.seq]
        assert len(answers) <= 1
        return answers[0] if answers else None

    def settled(self, claim: Claim, kind: str, **more: Any) -> list[WriteResult]:
        """All results of a settle, also about promoted jobs and freed types."""
        return self.run(leases.settle([Verdict(claim, kind, **more)]))

    def heartbeat(self, claims: Sequence[Claim]) -> list[WriteResult]:
        return self.run(leases.heartbeat([c.seq for c in claims], [c.attempt for c in claims]))

    def report(
        self, reports: Sequence[Report] = (), lines: Sequence[LogEntry] = ()
    ) -> list[WriteResult]:
        return self.run(leases.report(reports, lines))

    def cancel(
        self,
        seq: int,
        by: str = "me",
        reason: str | None = None,
        only: CancelOnly | None = None,
    ) -> jobs.FoundState:
        return self.run(jobs.cancel(self.id_of(seq), by, reason, only))

    def retry(self, seq: int) -> jobs.FoundState:
        return self.run(jobs.retry(self.id_of(seq)))

    # -- concurrency ----------------------------------------------------------------

    def begin(self) -> None:
        self.conn.execute("begin")

    def commit(self) -> None:
        self.conn.execute("commit")

    def rollback(self) -> None:
        self.conn.execute("rollback")

    def later(self, call: Callable[[], T]) -> Future[T]:
        """Runs a call in a thread that will wait for a lock on this connection."""
        return self._thread.submit(call)

    def await_blocked(self, other: StoreClient) -> None:
        """Returns once the other client's statement waits for a lock."""
        pid, deadline = other.pid, time.monotonic() + PATIENCE
        # A separate connection: inside a transaction pg_stat_activity does not change.
        with psycopg.connect(self.dsn, autocommit=True) as watch:
            while watch.execute(BLOCKED, [pid]).fetchone() != (True,):
                assert time.monotonic() < deadline, "no statement waits"


def whole(job_type: str, group: int = 1) -> list[Range]:
    """The ranges that cover every row of a job type."""
    return [
        Range(job_type, group, fresh, leases.MIN_RANK, 0, leases.MAX_RANK)
        for fresh in (False, True)
    ]


def error(kind: str = "Boom", message: str = "it broke") -> str:
    return json.dumps({"type": kind, "message": message})
