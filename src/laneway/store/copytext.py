"""COPY's text format: values escaped, a batch of new jobs rendered part by part."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from laneway.domain.job import NewJob

NULL: Final = "\\N"
_SPECIAL: Final = re.compile(r"[\\\t\n\r]")
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})

# Small enough that the server stores one part while the next is rendered.
_PART: Final = 100

JOBS: Final = (
    "copy laneway.jobs (seq, id, job_type, workspace, payload, priority, max_retries, run_at, "
    "unique_key, tags, created_at, created_by, traceparent) from stdin (encoding 'UTF8')"
)
READY: Final = "copy laneway.ready (seq, job_type, rank, ready_at) from stdin (encoding 'UTF8')"
DELAYED: Final = "copy laneway.delayed (seq, job_type, rank, run_at) from stdin (encoding 'UTF8')"


class NewRow(NamedTuple):
    """A new job with what the database and its job type decided; `due` is set when it must wait."""

    seq: int
    job: NewJob
    priority: int
    max_retries: int
    run_at: str | None
    due: str | None


def escape(text: str) -> str:
    """A text as a COPY column."""
    return text.translate(_ESCAPES) if _SPECIAL.search(text) else text


def optional(text: str | None) -> str:
    """A text or null as a COPY column."""
    return NULL if text is None else escape(text)


# Job types, workspaces and the like repeat all over a batch.
_name = lru_cache(maxsize=1024)(optional)


def array_literal(texts: Sequence[str]) -> str | None:
    """PostgreSQL's text form of a text[]; None for no texts, as laneway.submit stores it."""
    if not texts:
        return None
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return '{"' + '","'.join(quoted) + '"}'


def jobs_data(rows: Sequence[NewRow], now: str) -> Iterator[bytes]:
    """The data of JOBS."""
    for start in range(0, len(rows), _PART):
        yield "".join(
            [
                f"{seq}\t{job.id.int:032x}\t{_name(job.job_type)}\t{_name(job.workspace)}"
                f"\t{escape(job.payload)}\t{priority}\t{max_retries}\t{run_at or NULL}"
                f"\t{optional(job.unique_key)}\t{optional(array_literal(job.tags))}\t{now}"
                f"\t{_name(job.created_by)}\t{_name(job.traceparent)}\n"
                for seq, job, priority, max_retries, run_at, _ in rows[start : start + _PART]
            ]
        ).encode()


def ready_data(rows: Sequence[NewRow], now: str) -> Iterator[bytes]:
    """The data of READY, for rows that need not wait."""
    yield "".join(
        [f"{row.seq}\t{_name(row.job.job_type)}\t{-row.priority}\t{now}\n" for row in rows]
    ).encode()


def delayed_data(rows: Sequence[NewRow]) -> Iterator[bytes]:
    """The data of DELAYED, for rows that wait."""
    yield "".join(
        [f"{row.seq}\t{_name(row.job.job_type)}\t{-row.priority}\t{row.due}\n" for row in rows]
    ).encode()
