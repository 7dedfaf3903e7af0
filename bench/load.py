"""Thousands of jobs: the rows that a submit writes, rendered in advance and stored by COPY."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg

from bench.app import NOOP
from bench.server import Conn, Database
from laneway.domain.job import new_job_id
from laneway.store.copytext import NULL

# The columns that a bulk submit writes.
_JOBS = (
    "copy laneway.jobs (seq, id, job_type, workspace, payload, priority, max_retries, run_at, "
    "unique_key, tags, created_at, created_by, traceparent, concurrency_key) from stdin"
)
_READY = "copy laneway.ready (seq, job_type, rank, ready_at) from stdin"

PAYLOAD = '{"text":"' + "x" * 39 + '"}'
_NEXT_ID = 1 << 32


@dataclass(frozen=True, slots=True)
class Rows:
    """The COPY data of jobs with the numbers `first` to `last`."""

    first: int
    last: int
    jobs: bytes
    ready: bytes

    def __len__(self) -> int:
        return self.last - self.first + 1


# Maps the number of a job to its type and its concurrency_key.
Kind = Callable[[int], tuple[str, str | None]]


def all_of(job_type: str, key: str | None = None) -> Kind:
    return lambda n: (job_type, key)


PLAIN = all_of(NOOP)


def render(database: Database, count: int, kind: Kind = PLAIN, payload: str = PAYLOAD) -> Rows:
    """Rows of `count` jobs with fresh numbers."""
    last = int(
        database.value(
            "select setval('laneway.jobs_seq_seq', nextval('laneway.jobs_seq_seq') + %s)", count - 1
        )
    )
    first = last - count + 1
    now = database.value("select clock_timestamp()::text")
    start = new_job_id().int - first * _NEXT_ID
    rest = f"default\t{payload}\t0\t3\t\\N\t\\N\t\\N\t{now}\t\\N\t\\N"
    jobs, ready = [], []
    for n in range(first, last + 1):
        job_type, key = kind(n)
        jobs.append(f"{n}\t{start + n * _NEXT_ID:032x}\t{job_type}\t{rest}\t{key or NULL}\n")
        ready.append(f"{n}\t{job_type}\t0\t{now}\n")
    return Rows(first, last, "".join(jobs).encode(), "".join(ready).encode())


def store(conn: Conn, rows: Rows) -> None:
    """Store rows in one transaction with two COPYs."""
    with conn.transaction(), conn.cursor() as cursor:
        with cursor.copy(_JOBS) as copy:
            copy.write(rows.jobs)
        with cursor.copy(_READY) as copy:
            copy.write(rows.ready)


async def store_async(conn: psycopg.AsyncConnection[Any], rows: Rows) -> None:
    """Store rows as `store` does, on an async connection."""
    async with conn.transaction(), conn.cursor() as cursor:
        async with cursor.copy(_JOBS) as copy:
            await copy.write(rows.jobs)
        async with cursor.copy(_READY) as copy:
            await copy.write(rows.ready)


def fill(
    database: Database, count: int, kind: Kind = PLAIN, payload: str = PAYLOAD
) -> tuple[int, int]:
    """Store jobs; return the first and the last number."""
    first = last = 0
    while count > 0:
        rows = render(database, min(count, 100_000), kind, payload)
        store(database.conn, rows)
        first, last = first or rows.first, rows.last
        count -= len(rows)
    return first, last
