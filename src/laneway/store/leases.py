"""The hot path: claim, settle, heartbeat, report. Every write about a running job takes a Claim."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from laneway.domain.claim import Claim
from laneway.domain.retry import DEFAULT_MAX_RETRIES
from laneway.store.arrays import array_of_numbers, array_of_texts
from laneway.store.statement import Row, Statement, nothing, scalar

MIN_RANK = -2_000_000
MAX_RANK = 2_000_000
# Array columns of a claim without origins.
_COLUMNS = 13
# Without and with origins.
_WITH_LOSSES = (_COLUMNS + 1, _COLUMNS + 3)


class Range(NamedTuple):
    """Waiting rows of one job type to search: ranks after (lo, floor) up to hi.

    `fresh`: jobs never claimed before, else returned ones.
    """

    job_type: str
    group: int
    fresh: bool
    lo: int
    floor: int
    hi: int


class Assignment(NamedTuple):
    """One claimed job; payload and checkpoint are still JSON text.

    `waited_s` and `traceparent`: only for claims with origins. `losses`: how often its worker died
    without the loss being charged to this job.
    """

    claim: Claim
    rank: int
    job_type: str
    payload: str
    checkpoint: str | None
    retries: int
    fresh: bool
    changed_since_approval: bool = False
    max_retries: int = DEFAULT_MAX_RETRIES
    tags: tuple[str, ...] = ()
    created_by: str | None = None
    waited_s: float | None = None
    traceparent: str | None = None
    losses: int = 0


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """The result of a claim; `state`: ok, changed, paused, disabled, full, limited or replaced.

    `limited`: a limit left a job type fewer slots than it may have jobs; `wait_s`: until a rate
    allows more. `parked`: jobs put aside, because another job holds their key. `refused`: a claim
    of plain jobs alone may have left others.
    """

    state: str
    own_xid: int
    horizon_xid: int
    left_over: int
    more: bool
    lease_s: int
    limited: bool
    wait_s: float | None
    parked: int
    assignments: list[Assignment]
    refused: bool = False


class Verdict(NamedTuple):
    """The end of an attempt: finish, fail, giveup, snooze, release, cancel, analyzed or confirm.

    Or wait: `result` is then the name of the wait, not JSON. `may_be_finished`: the handler may
    already have finished it in its own transaction.
    """

    claim: Claim
    kind: str
    result: str | None = None
    error: str | None = None
    delay_s: float | None = None
    ran_s: float | None = None
    may_be_finished: bool = False


class WriteResult(NamedTuple):
    """The result of a worker's write: accepted, cancel_requested, fenced or busy.

    `promoted`: another job got a key, or waited for this one; `status` is its job type. `freed`: a
    limit has capacity again; `status` is a job type that may have waited for it. `arrived`: ends
    of jobs have left work for `edges.advance`.
    """

    seq: int
    attempt: int
    answer: str
    status: str | None = None


def _claimed(rows: list[Row]) -> ClaimAnswer:
    if not rows:
        return ClaimAnswer("replaced", 0, 0, 0, False, 0, False, None, 0, [])
    state, own, horizon, left, more, lease_s, limited, wait_s, parked, refused, *columns = rows[0]
    head = (
        state, int(own or 0), int(horizon or 0), left or 0, bool(more), lease_s or 0,
        bool(limited), wait_s, parked or 0,
    )  # fmt: skip
    if not columns[0]:
        return ClaimAnswer(*head, [], bool(refused))
    count = len(columns[0])
    losses = columns.pop() if len(columns) in _WITH_LOSSES else None
    if len(columns) == _COLUMNS:
        columns += [[None] * count] * 2
    columns.append(losses or [0] * count)
    # Null if no job of the claim has one.
    tags, created_by = columns[11:13]
    columns[11] = [()] * count if tags is None else [tuple(json.loads(t or "[]")) for t in tags]
    columns[12] = [None] * count if created_by is None else created_by
    claims = map(Claim._make, zip(*columns[:3], strict=True))
    assignments = map(Assignment._make, zip(claims, *columns[3:], strict=True))
    return ClaimAnswer(*head, list(assignments), bool(refused))


def claim(
    worker_id: UUID,
    lane: str,
    version: int,
    room: int,
    ranges: Sequence[Range],
    caps: Sequence[int],
    busy: int | None = None,
    *,
    origins: bool = False,
    stream_id: UUID | None = None,
    plain: bool = False,
) -> Statement[ClaimAnswer]:
    """Claims up to `room` due jobs of a lane; see laneway.claim in definitions/claim.sql.

    `origins`: also returns how long each job was due, and the trace of its submit. `stream_id`:
    claims only if it is the newest stream of a remote worker; includes origins. `plain`: leaves
    jobs that hold more than a slot.
    """
    types, groups, fresh, los, floors, highs = zip(*ranges, strict=True)
    name = "leases/claim_with_origins" if origins else "leases/claim_jobs"
    if stream_id is not None:
        name = "remote/claim_jobs"
    return Statement(
        name,
        _claimed,
        {
            **({} if stream_id is None else {"stream": stream_id}),
            "plain": plain,
            "worker": worker_id,
            "lane": lane,
            "version": version,
            "room": room,
            "types": array_of_texts(types),
            "groups": array_of_numbers(groups),
            "fresh": array_of_numbers([int(one) for one in fresh]),
            "los": array_of_numbers(los),
            "floors": array_of_numbers(floors),
            "highs": array_of_numbers(highs),
            "caps": array_of_numbers(caps),
            "busy": busy,
        },
    )


def park(job_types: Sequence[str], limit: int) -> Statement[int]:
    """Parks the next jobs of these types whose key another job holds; returns how many."""
    return Statement("leases/park_jobs", scalar, {"types": list(job_types), "limit": limit})


def _answers(rows: list[Row]) -> list[WriteResult]:
    return [WriteResult(*row) for row in rows]


def settle(verdicts: Sequence[Verdict]) -> Statement[list[WriteResult]]:
    """Ends attempts; returns all results except plainly accepted finishes."""
    claims, kinds, results, errors, delays, ran, _ = zip(*verdicts, strict=True)
    seqs, _, attempts = zip(*claims, strict=True)
    return Statement(
        "leases/settle_jobs",
        _answers,
        {
            "seqs": array_of_numbers(seqs),
            "attempts": array_of_numbers(attempts),
            "verdicts": array_of_texts(kinds),
            "results": array_of_texts(results),
            "errors": array_of_texts(errors),
            "delays": array_of_numbers(delays),
            "ran": array_of_numbers(ran),
        },
    )


def heartbeat(seqs: Sequence[int], attempts: Sequence[int]) -> Statement[list[WriteResult]]:
    """Renews leases; returns those not plainly renewed."""
    return Statement(
        "leases/renew_leases", _answers, {"seqs": list(seqs), "attempts": list(attempts)}
    )


class Report(NamedTuple):
    """Progress of an attempt; None keeps the stored value."""

    claim: Claim
    stage: str | None = None
    done: float | None = None
    total: float | None = None
    message: str | None = None
    checkpoint: str | None = None


class LogEntry(NamedTuple):
    """A log line of an attempt, with its line number and its age when sent."""

    claim: Claim
    line: int
    level: str
    message: str
    age_s: float


def report(reports: Sequence[Report], lines: Sequence[LogEntry]) -> Statement[list[WriteResult]]:
    """Stores progress, checkpoints and log lines; returns those not plainly accepted."""
    return Statement(
        "leases/report_progress",
        _answers,
        {
            "seqs": [r.claim.seq for r in reports],
            "attempts": [r.claim.attempt for r in reports],
            "stages": [r.stage for r in reports],
            "dones": array_of_numbers([r.done for r in reports]),
            "totals": array_of_numbers([r.total for r in reports]),
            "messages": [r.message for r in reports],
            "checkpoints": [r.checkpoint for r in reports],
            "log_seqs": [n.claim.seq for n in lines],
            "log_attempts": [n.claim.attempt for n in lines],
            "log_lines": [n.line for n in lines],
            "log_levels": [n.level for n in lines],
            "log_texts": [n.message for n in lines],
            "log_ages": [n.age_s for n in lines],
        },
    )


class LostAttempt(NamedTuple):
    """A reclaimed attempt.

    `stalled`: the reason if its worker renewed the lease; `ended`: None if the job is queued again.
    """

    job_type: str
    job_id: str
    attempt: int
    worker: str
    stalled: str | None
    ended: str | None


class WatchdogPass(NamedTuple):
    """The result of a watchdog pass; epoch None: this process is not the leader.

    `next_s`: seconds until the next lease lapses; for a process that is not the leader, until the
    leadership lapses. `clock_s` is the database's clock. `lost`: the first of the reclaimed
    attempts.
    """

    epoch: int | None
    reclaimed: int
    job_types: list[str] | None
    more: bool
    has_duties: bool = False
    next_s: float | None = None
    clock_s: float = 0.0
    lost: tuple[LostAttempt, ...] = ()


def _watchdog_pass(row: Row) -> WatchdogPass:
    lost = tuple(LostAttempt(*one) for one in json.loads(row[-1] or "[]"))
    return WatchdogPass(*row[:-1])._replace(lost=lost)


def run_watchdog(holder: UUID, ttl_s: float, limit: int = 200) -> Statement[WatchdogPass]:
    """Renews leadership and reclaims overdue leases of one lane."""
    return Statement(
        "leases/reclaim_leases",
        lambda rows: _watchdog_pass(rows[0]),
        {"holder": holder, "ttl": ttl_s, "limit": limit},
    )


def resign(holder: UUID) -> Statement[None]:
    """Gives up leadership, so that another process takes it at once."""
    return Statement("leases/resign_leader", nothing, {"holder": holder})


def fail_worker(
    worker_id: UUID,
    message: str,
    *,
    hung: bool,
    culprit: int | None,
    began: Sequence[int] | None = None,
) -> Statement[int]:
    """Ends the attempts of a dead worker process; only its supervisor may call it.

    `began`: the jobs whose handlers had been called; None: unknown, perhaps all.
    """
    return Statement(
        "leases/fail_worker",
        scalar,
        {
            "worker": worker_id,
            "hung": hung,
            "culprit": culprit,
            "message": message,
            "began": None if began is None else list(began),
        },
    )
