"""The state machine of a job, in one table of transitions.

The CHECK constraints of the schema and `docs/state-machine.md` render `TRANSITIONS`; tests compare
all three.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from laneway.domain.suggestion import suggest
from laneway.errors import InvalidInput


class Status(StrEnum):
    """The status of a job."""

    PENDING = "pending"
    AWAITING_APPROVAL = "awaiting_approval"
    WAITING = "waiting"
    APPROVED = "approved"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Verb(StrEnum):
    """A verb that moves a job from one status to the next."""

    SUBMIT = "submit"
    ANALYSIS_DONE = "analysis_done"
    ANALYSIS_FAILED = "analysis_failed"
    APPROVE = "approve"
    REJECT = "reject"
    EXPIRE = "expire"
    CLAIM = "claim"
    FINISH = "finish"
    FAIL = "fail"
    LAPSE = "lapse"
    RELEASE = "release"
    SNOOZE = "snooze"
    WAIT = "wait"
    ARRIVE = "arrive"
    PARENT_FAILED = "parent_failed"
    REQUEST_CANCEL = "request_cancel"
    CANCEL = "cancel"
    MAX_AGE = "max_age"
    RETRY = "retry"


class Transition(NamedTuple):
    """One row of the table; `before` is None for a new job."""

    before: Status | None
    verb: Verb
    after: Status
    guard: str


ANALYSIS_TRIES: Final = 3

_NEW: Final = None
_PENDING = Status.PENDING
_AWAITING = Status.AWAITING_APPROVAL
_WAITING = Status.WAITING
_APPROVED = Status.APPROVED
_RUNNING = Status.RUNNING
_COMPLETED = Status.COMPLETED
_FAILED = Status.FAILED
_CANCELLED = Status.CANCELLED

_NO_CANCEL = "no cancel was requested"
_CANCEL = "a cancel was requested"
_BUDGET = f"`retries` < `max_retries` and {_NO_CANCEL}; the budget is charged, `run_at` backs off"
_SPENT = f"`retries` = `max_retries`, or the failure is final, and {_NO_CANCEL}"
_UNCHARGED = f"{_NO_CANCEL}; the budget is not charged"

TRANSITIONS: Final[tuple[Transition, ...]] = (
    Transition(_NEW, Verb.SUBMIT, _PENDING, "the job type has an analysis"),
    Transition(_NEW, Verb.SUBMIT, _AWAITING, "no analysis, and the job type needs approval"),
    Transition(_NEW, Verb.SUBMIT, _APPROVED, "no analysis and no approval, or policy approves"),
    Transition(_NEW, Verb.SUBMIT, _WAITING, "a job that it comes after has not ended"),
    Transition(_NEW, Verb.SUBMIT, _CANCELLED, "a job that it comes after failed or was cancelled"),
    Transition(_WAITING, Verb.ARRIVE, _APPROVED, "what it waits for came, or its timeout passed"),
    Transition(
        _WAITING, Verb.ARRIVE, _PENDING, "before its first run: the job type has an analysis"
    ),
    Transition(
        _WAITING, Verb.ARRIVE, _AWAITING, "before its first run: the job type needs approval"
    ),
    Transition(
        _WAITING,
        Verb.PARENT_FAILED,
        _CANCELLED,
        'a job that it comes after failed or was cancelled, and `after_failure` is "cancel"',
    ),
    Transition(_WAITING, Verb.CANCEL, _CANCELLED, "at once"),
    Transition(_WAITING, Verb.MAX_AGE, _FAILED, "older than its job type's `max_age`"),
    Transition(_PENDING, Verb.CLAIM, _PENDING, "by its analysis, in its own lane; `attempt` + 1"),
    Transition(_PENDING, Verb.ANALYSIS_DONE, _AWAITING, "the job type needs approval"),
    Transition(_PENDING, Verb.ANALYSIS_DONE, _APPROVED, "no approval needed, or policy approves"),
    Transition(_PENDING, Verb.ANALYSIS_DONE, _CANCELLED, _CANCEL),
    Transition(
        _PENDING,
        Verb.ANALYSIS_FAILED,
        _PENDING,
        f"an error or a lapsed lease, and fewer than {ANALYSIS_TRIES} tries were made",
    ),
    Transition(
        _PENDING,
        Verb.ANALYSIS_FAILED,
        _FAILED,
        f"all {ANALYSIS_TRIES} tries were made, or the failure is final",
    ),
    Transition(_PENDING, Verb.ANALYSIS_FAILED, _CANCELLED, f"{_CANCEL}; not tried again"),
    Transition(_PENDING, Verb.RELEASE, _PENDING, _UNCHARGED),
    Transition(_PENDING, Verb.RELEASE, _CANCELLED, _CANCEL),
    Transition(_PENDING, Verb.SNOOZE, _PENDING, _UNCHARGED),
    Transition(_PENDING, Verb.SNOOZE, _CANCELLED, _CANCEL),
    Transition(_PENDING, Verb.REQUEST_CANCEL, _PENDING, "its analysis runs; it is asked to stop"),
    Transition(
        _PENDING,
        Verb.CANCEL,
        _CANCELLED,
        "at once while its analysis waits; otherwise when that stops or raises `Cancel`",
    ),
    Transition(_PENDING, Verb.MAX_AGE, _FAILED, f"older than `max_age`, and {_NO_CANCEL}"),
    Transition(_PENDING, Verb.MAX_AGE, _CANCELLED, f"older than `max_age`, but {_CANCEL}"),
    Transition(_AWAITING, Verb.APPROVE, _APPROVED, "by a person or a policy, for this payload"),
    Transition(_AWAITING, Verb.REJECT, _CANCELLED, "a reason is given"),
    Transition(_AWAITING, Verb.EXPIRE, _CANCELLED, "`expires_at` has passed (24 h by default)"),
    Transition(_AWAITING, Verb.CANCEL, _CANCELLED, "at once"),
    Transition(_AWAITING, Verb.MAX_AGE, _FAILED, "older than its job type's `max_age`"),
    Transition(
        _APPROVED,
        Verb.CLAIM,
        _RUNNING,
        "`run_at` has passed, the lane is enabled and has a free slot, the pause gate is open; "
        "`attempt` + 1",
    ),
    Transition(
        _APPROVED, Verb.CLAIM, _PENDING, "its job type now needs an analysis, and it has none"
    ),
    Transition(
        _APPROVED,
        Verb.CLAIM,
        _AWAITING,
        "its job type now needs an approval, which it does not have, and no analysis is missing",
    ),
    Transition(_APPROVED, Verb.CANCEL, _CANCELLED, "at once; the job never starts"),
    Transition(_APPROVED, Verb.MAX_AGE, _FAILED, "older than its job type's `max_age`"),
    Transition(_RUNNING, Verb.FINISH, _COMPLETED, _NO_CANCEL),
    Transition(_RUNNING, Verb.FINISH, _CANCELLED, f"{_CANCEL}; the result is kept"),
    Transition(_RUNNING, Verb.FAIL, _APPROVED, _BUDGET),
    Transition(_RUNNING, Verb.FAIL, _FAILED, _SPENT),
    Transition(_RUNNING, Verb.FAIL, _CANCELLED, f"{_CANCEL}; not retried"),
    Transition(
        _RUNNING,
        Verb.LAPSE,
        _APPROVED,
        f"lease lapsed or work stale; {_BUDGET}; not charged if others were lost with it",
    ),
    Transition(_RUNNING, Verb.LAPSE, _FAILED, f"lease lapsed or work stale; {_SPENT}"),
    Transition(
        _RUNNING, Verb.LAPSE, _CANCELLED, f"lease lapsed or work stale; {_CANCEL}; not retried"
    ),
    Transition(_RUNNING, Verb.RELEASE, _APPROVED, _UNCHARGED),
    Transition(_RUNNING, Verb.RELEASE, _CANCELLED, _CANCEL),
    Transition(_RUNNING, Verb.SNOOZE, _APPROVED, f"{_UNCHARGED}; `run_at` moves on"),
    Transition(_RUNNING, Verb.SNOOZE, _CANCELLED, _CANCEL),
    Transition(_RUNNING, Verb.WAIT, _WAITING, f"{_UNCHARGED}; its handler waits"),
    Transition(_RUNNING, Verb.WAIT, _APPROVED, "what its handler waits for came meanwhile"),
    Transition(_RUNNING, Verb.WAIT, _CANCELLED, _CANCEL),
    Transition(
        _RUNNING,
        Verb.REQUEST_CANCEL,
        _RUNNING,
        "`cancel_requested_at` is set; from now on the attempt can only end in `cancelled`",
    ),
    Transition(
        _RUNNING,
        Verb.CANCEL,
        _CANCELLED,
        "the handler stopped, raised `Cancel`, or was fenced after the grace; checkpoint kept",
    ),
    Transition(_RUNNING, Verb.MAX_AGE, _FAILED, f"older than `max_age`, and {_NO_CANCEL}"),
    Transition(_RUNNING, Verb.MAX_AGE, _CANCELLED, f"older than `max_age`, but {_CANCEL}"),
    *(
        row
        for ended in (_FAILED, _CANCELLED)
        for row in (
            Transition(
                ended, Verb.RETRY, _APPROVED, "this payload was approved or needs no approval"
            ),
            Transition(
                ended,
                Verb.RETRY,
                _AWAITING,
                "neither approved as it is nor by policy",
            ),
            Transition(
                ended, Verb.RETRY, _PENDING, "never analysed, or changed since it was approved"
            ),
            Transition(ended, Verb.RETRY, _WAITING, "a job that it comes after has not completed"),
        )
    ),
)

TERMINAL: Final = frozenset({_COMPLETED, _FAILED, _CANCELLED})
LIVE: Final = frozenset(Status) - TERMINAL

_ALLOWED: Final = frozenset((row.before, row.verb) for row in TRANSITIONS)

_MEANING: Final[dict[Status, str]] = {
    _PENDING: "submitted; its analysis (plan, cost estimate) waits or runs, leased and fenced "
    f"like a run, with {ANALYSIS_TRIES} separate tries",
    _AWAITING: "waits for a person or a policy",
    _WAITING: "waits for other jobs, or for an event or a time that its handler asked for; "
    "it holds no lease, slot, limit or key",
    _APPROVED: "claimable as soon as `run_at` has passed",
    _RUNNING: "one worker holds the lease of the current attempt",
    _COMPLETED: "the handler's result was accepted; terminal",
    _FAILED: "the retry budget is spent, or the job is too old; terminal until a retry",
    _CANCELLED: "cancelled, rejected, expired, or after a failed job; terminal until a retry",
}


def label_of(status: Status, approved_by: str | None) -> str:
    """The status for people; a job that needed no approval is `queued`, not `approved`."""
    if status is _APPROVED and approved_by is None:
        return "queued"
    return "analysing" if status is _PENDING else status.value


# Names for people, and the names of other systems.
LABELS: Final[dict[str, Status]] = {
    "queued": _APPROVED,
    "analysing": _PENDING,
    "analyzing": _PENDING,
    "available": _APPROVED,
    "enqueued": _APPROVED,
    "scheduled": _APPROVED,
    "started": _RUNNING,
    "executing": _RUNNING,
    "active": _RUNNING,
    "success": _COMPLETED,
    "succeeded": _COMPLETED,
    "done": _COMPLETED,
    "finished": _COMPLETED,
    "failure": _FAILED,
    "error": _FAILED,
    "dead": _FAILED,
    "discarded": _FAILED,
    "canceled": _CANCELLED,
    "revoked": _CANCELLED,
}


def parse_status(text: str) -> Status:
    """The status with this name or label; InvalidInput suggests the nearest."""
    word = text.strip().lower().replace("-", "_").replace(" ", "_")
    if word in LABELS:
        return LABELS[word]
    try:
        return Status(word)
    except ValueError:
        similar = suggest(word, (*Status, *LABELS))
        names = f"{', '.join(Status)}, or another name of one of them: {', '.join(LABELS)}"
        raise InvalidInput(
            "status", f"{text[:40]!r} is not a status{similar or f': use {names}'}"
        ) from None


def can(status: Status | None, verb: Verb | str) -> bool:
    """Whether the table has a row for this status (None: new) and verb."""
    return (status, verb) in _ALLOWED


def next_statuses(status: Status | None, verb: Verb | str | None = None) -> frozenset[Status]:
    """The statuses that may follow, by this verb or by any."""
    return frozenset(
        row.after for row in TRANSITIONS if row.before is status and verb in (None, row.verb)
    )


def _labels(status: Status) -> str:
    never, decided = label_of(status, None), label_of(status, "policy")
    if never == decided:
        return f"`{never}`"
    return f"`{never}`; `{decided}` once a person or a policy approved it"


def render_markdown() -> str:
    """The page `docs/state-machine.md`."""
    lines = [
        "# The state machine of a job",
        "",
        "Generated from `laneway.domain.states`; edit the table there, not this page.",
        "",
        "```mermaid",
        "stateDiagram-v2",
    ]
    edges: dict[tuple[str, str], list[str]] = {}
    for row in TRANSITIONS:
        verbs = edges.setdefault((row.before or "[*]", row.after), [])
        if row.verb not in verbs:
            verbs.append(row.verb)
    lines += [
        f"    {before} --> {after}: {', '.join(verbs)}" for (before, after), verbs in edges.items()
    ]
    lines += [f"    {status} --> [*]" for status in Status if status in TERMINAL]
    lines += ["```", "", "## Statuses", "", "| status | label | meaning |", "| --- | --- | --- |"]
    lines += [f"| `{status}` | {_labels(status)} | {text} |" for status, text in _MEANING.items()]
    lines += [
        "",
        "Filters of the HTTP API, events and `status` use the status. Tables of the command line",
        "show the `label`; `--status` and `lw.jobs.list(status=…)` take both.",
        "",
        "## Transitions",
        "",
        "At most one terminal write is accepted per attempt, and only an operator's retry leaves a",
        "terminal status. After a retry `attempt` continues to grow, and `retries` restarts at 0.",
        "",
        "| from | verb | to | when |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {f'`{row.before}`' if row.before else '(new)'} | {row.verb} | `{row.after}` "
        f"| {row.guard} |"
        for row in TRANSITIONS
    ]
    return "\n".join(lines) + "\n"
