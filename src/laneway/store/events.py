"""The event log and its watches, as statements.

A watch makes changes of one job be logged while a client reads its events.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from laneway.domain.event import Event
from laneway.domain.job import Job
from laneway.domain.redaction import redact
from laneway.domain.states import TERMINAL
from laneway.store.jobs import read_job
from laneway.store.statement import Row, Statement, nothing, scalar

CHANNEL: Final = "laneway_events"
PAGE: Final = 500
ENDS: Final = frozenset(f"job.{status}" for status in TERMINAL)


def emit(seqs: Sequence[int], change: str) -> Statement[None]:
    """Logs a change of those jobs that are watched; last in its transaction."""
    return Statement("events/emit_jobs", nothing, {"seqs": list(seqs), "change": change})


def open_watches(seqs: Collection[int], keep_s: float) -> Statement[set[int]]:
    """Opens or extends watches; returns those to reconcile in a later transaction."""
    return Statement(
        "events/open_watches",
        lambda rows: {seq for seq, is_settled in rows if not is_settled},
        {"seqs": sorted(seqs), "keep_s": keep_s},
    )


def renew_watches(seqs: Collection[int], keep_s: float) -> Statement[set[int]]:
    """Extends watches; returns those that exist."""
    return Statement(
        "events/renew_watches",
        lambda rows: {row[0] for row in rows},
        {"seqs": sorted(seqs), "keep_s": keep_s},
    )


def reconcile(seqs: Collection[int]) -> Statement[set[int]]:
    """Logs changes by transactions that did not see these watches; returns the settled ones."""
    return Statement(
        "events/reconcile_watches", lambda rows: {row[0] for row in rows}, {"seqs": sorted(seqs)}
    )


class Span(NamedTuple):
    """Events by id, the snapshot up to which they were visible, and the identity of the log."""

    next: str
    log: str
    events: list[Event]


def between(
    prev: str, following: str | None = None, *, after: int = 0, limit: int = PAGE
) -> Statement[Span]:
    """Events that became visible after one snapshot, up to another or to now."""
    return Statement(
        "events/read_between",
        lambda rows: Span(rows[0][0], rows[0][1], [_event(row[2:]) for row in rows[1:]]),
        {"prev": prev, "next": following, "after": after, "limit": limit},
    )


def _event(row: Row) -> Event:
    number, seq, name, workspace, lane, job_type, created_by, text = row
    state = json.loads(text)
    # As in jobs.read_job: reasons written by SQL are not redacted yet.
    if state.get("cancel_reason"):
        state["cancel_reason"] = redact(state["cancel_reason"])
    return Event(number, seq, name, workspace, lane, job_type, created_by, state)


class JobLog(NamedTuple):
    """Events of one job.

    `is_known`: all events after the requested one; else only the newest. `newest` and `name`: id
    and name of the last event. `log`: the identity of the log.
    """

    is_known: bool
    newest: int | None
    name: str | None
    log: str
    events: list[Event]

    @property
    def is_over(self) -> bool:
        """Whether the reader already has the terminal event."""
        return self.is_known and not self.events and self.name in ENDS


def of_job(
    seq: int, after: int | None, limit: int = PAGE, *, log: str | None = None
) -> Statement[JobLog]:
    """The events of a job after one, or the newest. `log`: the log that `after` belongs to."""

    def decode(rows: list[Row]) -> JobLog:
        events = [_event(row[4:]) for row in rows if row[4] is not None]
        is_known, newest, name, log_read = rows[0][:4]
        return JobLog(is_known, newest, name, log_read, events)

    params = {"seq": seq, "after": after, "limit": limit, "log": log}
    return Statement("events/read_job_events", decode, params)


def can_resume(seqs: Collection[int], since: str, log: str | None = None) -> Statement[bool]:
    """Whether the log still has all events of these watches since a snapshot of `log`."""
    params = {"seqs": sorted(seqs), "since": since, "log": log}
    return Statement("events/check_resume", scalar, params)


def position() -> Statement[tuple[str, str]]:
    """The current snapshot of the log, and the identity of the log."""
    return Statement("events/take_snapshot", lambda rows: (rows[0][0], rows[0][1]))


def numbers(job_ids: Collection[UUID]) -> Statement[dict[UUID, int]]:
    """The sequence numbers of the jobs that exist."""
    return Statement(
        "events/find_numbers", lambda rows: {row[0]: row[1] for row in rows}, {"ids": list(job_ids)}
    )


def jobs(seqs: Collection[int], *, values: bool = True) -> Statement[dict[int, Job]]:
    """The jobs that exist, by sequence number; `values`: with payload, result, checkpoint."""
    return Statement(
        "events/read_jobs" if values else "events/read_jobs_without_values",
        lambda rows: {row[0]: read_job(row) for row in rows},
        {"seqs": sorted(seqs)},
        may_be_large=True,
    )
