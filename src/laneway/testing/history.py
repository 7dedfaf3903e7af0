"""The events of a test run, recorded by submitters, handlers, an observer and the database.

A history is a list of events, stored as JSON lines. Laneway writes none of them: a program that
misjudges its state would also misreport it. The values of `what`, with their fields in `more`:

submit            a client's submit. phase: invoke, ok, fail or info (unknown: the answer was lost);
                  op: identifies this submit; unique_key
cancel            a client's cancel. phase as above; found: the state of the job
decide            a client's decision about a job. phase as above; decision: approved or rejected;
                  who: a principal that decides about each job once
born              a job was stored. op, unique_key, run_at (seconds, None for at once), max_retries;
                  needs: "approval" if it must not run without one; created_by
linked            the job comes after others, or is a sub-job. parents, owner: jobs;
                  rule: cancel, run or hold
decision          a decision was stored. decision: approved, automatic, rejected or expired; who;
                  payload: a digest of the payload decided about
slot              a slot of a schedule was recorded. schedule, slot, outcome; made: its job
claim             a worker claimed an attempt. lane, worker, lease_until; payload: a digest;
                  analysis: True for an analysis
renew             its lease was extended. lease_until
cancel_requested  its cancellation was requested
progress, log     progress or a log line of it was stored
end               its lease was removed. worker, lease_until (at that time)
kept              it ended, its job did not. outcome: failed, lost, released, snoozed, waited …
outcome           its job ended. status; claimed: False if it was cancelled while it waited
reopened          the job left a terminal state. by_operator: True for an operator's retry
write             a worker named this attempt in a write. verb; answer: accepted, fenced …
worker            a worker registered. worker, pid
leader            the leader changed. holder, epoch, held_until (of the previous leader)
start, stop       a handler began or ended. pid, t (this machine's monotonic seconds), how
effect            a handler used a sink that refuses old attempts. accepted
death             a process was killed or killed itself. pid
snapshot          the lanes at one instant. running: {lane: n}, limits: {lane: n or None};
                  held, ceilings: the same for limits; shared: keys that several attempts hold
fault             a fault was injected
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One event; `at` is the database's clock if the database recorded it."""

    what: str
    job: str | None = None
    attempt: int | None = None
    at: float = 0.0
    n: int = 0  # the order in which the database did it
    tx: int = 0  # the transaction that did it
    by: str = ""
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FinalJob:
    """A job in the tables at the end; status None: in no table, or in several."""

    job: str
    op: str | None
    status: str | None
    attempt: int = 0
    retries: int = 0
    max_retries: int = 3
    result: Any = None
    error: Any = None


@dataclass(frozen=True, slots=True)
class Final:
    """The tables at the end."""

    jobs: dict[str, FinalJob]
    lapsed: int = 0  # lapsed leases that were not taken back
    slots: int = 0  # slots in use by the counters, when nothing runs
    limits: int = 0  # limits in use by the counters, when nothing runs
    keys: int = 0  # keys that are held or waited for, when nothing runs


class History:
    """A list of events and its queries."""

    def __init__(self, events: Iterable[HistoryEvent] = ()) -> None:
        self.events = list(events)

    def __iter__(self) -> Iterator[HistoryEvent]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def add(
        self, what: str, job: str | None = None, attempt: int | None = None, **rest: Any
    ) -> None:
        """Adds an event; unknown fields go to `more`."""
        known = {name: rest.pop(name) for name in ("at", "n", "tx", "by") if name in rest}
        self.events.append(HistoryEvent(what, job, attempt, more=rest, **known))

    def of(self, *whats: str) -> list[HistoryEvent]:
        """The events of these kinds, in the order of the database."""
        return sorted((e for e in self.events if e.what in whats), key=lambda event: event.n)

    def per_job(self, *whats: str) -> dict[str, list[HistoryEvent]]:
        """The events of these kinds by job, in the order of the database."""
        found: defaultdict[str, list[HistoryEvent]] = defaultdict(list)
        for event in self.of(*whats):
            if event.job is not None:
                found[event.job].append(event)
        return found

    def save(self, path: Path) -> None:
        path.write_text("".join(json.dumps(asdict(e), default=str) + "\n" for e in self.events))

    @classmethod
    def load(cls, *paths: Path) -> History:
        """Loads all events of these files; skips a last line that a kill cut short."""
        events: list[HistoryEvent] = []
        for path in paths:
            lines = path.read_text().splitlines(keepends=True)
            events += [HistoryEvent(**json.loads(line)) for line in lines if line.endswith("\n")]
        return cls(events)
