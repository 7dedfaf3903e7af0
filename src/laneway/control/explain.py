"""Reasons why a job is not running, most decisive first, and when it may start.

The facts come from laneway.queue_position, which checks limits, keys and order as laneway.claim
does. A test verifies that a claim takes every job whose only reason is its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from shlex import quote
from typing import Final
from uuid import UUID

from laneway.control import jobs
from laneway.control.circles import find_circle
from laneway.control.nearest_type import SeenTypes, with_nearest_type
from laneway.control.start_estimate import estimate_start
from laneway.control.waiting import waiting_reasons
from laneway.control.worker_reasons import NAMED, listed, moment, worker_reasons
from laneway.domain.approval import excluded_approver
from laneway.domain.explanation import Explanation, Reason
from laneway.domain.job import Job
from laneway.domain.overview import SILENT_S, Blocker
from laneway.domain.states import TERMINAL, Status
from laneway.errors import WaitTimeout
from laneway.store import parents, waits
from laneway.store.aborted_statements import StatementTimeout
from laneway.store.brief_waits import BriefWaits
from laneway.store.database import Database
from laneway.store.explain import Facts, facts, own_ahead
from laneway.store.health import find_blockers
from laneway.store.parents import OpenParents

BOUND: Final = 10_000
# Codes that only describe the place of a job that could start.
PLACES: Final = frozenset({"behind_others", "first_in_lane", "about_to_start", "type_unpublished"})
# Codes of a job that needs what other jobs hold.
_HELD: Final = frozenset({"slots_full", "limit", "key", "workers_full"})
# The error of a wait that timed out. The wait stays over, so that a retry fails alike.
_TIMED_OUT: Final = WaitTimeout.__name__
# A renewal is late after this part of the time that a lease lasts beyond its renewal.
_TOLERANCE: Final = 0.25


async def explain(
    db: Database,
    job_id: UUID,
    *,
    debug: bool = True,
    reader: str | None = None,
    seen_types: SeenTypes | None = None,
) -> Explanation:
    """Every reason why the job is not running, or its state if it runs or has ended.

    `debug` adds the message of a private error. Jobs of the `reader` that wait before it are named.
    For a mistyped job type, the nearest of the `seen_types` (None: of all) is suggested.
    """
    try:
        return await _explain(BriefWaits(db), job_id, debug, reader, seen_types)
    except StatementTimeout as error:
        blockers = await db.run(find_blockers(age_s=0))
        if not blockers:
            raise
        named = "; ".join(reason.message for reason in _locks(blockers))
        raise StatementTimeout(f"a statement waited too long: {named}") from error


async def _explain(
    db: Database, job_id: UUID, debug: bool, reader: str | None, seen_types: SeenTypes | None
) -> Explanation:
    # Facts first: the job, read afterwards, has the newer state.
    found = await db.run(facts(job_id, bound=BOUND, holders=NAMED))
    job = await jobs.show(db, job_id)
    if not debug:
        job = job.public()
    if found is None:
        return Explanation.of(job, [])
    if job.status is Status.WAITING:
        reasons = _waiting(job, found, await db.run(parents.read(job_id)))
        if not found.is_published:
            reasons += await with_nearest_type(db, _published(found), found.job_type, seen_types)
        return Explanation.of(job, reasons, None, _run_time(found))
    blockers = [] if job.status in TERMINAL else await db.run(find_blockers())
    reasons = reasons_of(job, found, db.settings.heartbeat_fraction, blockers)
    if _HELD & {reason.code for reason in reasons}:
        graph = await db.run(waits.graph(job_id))
        if circle := find_circle(graph, job_id) if graph is not None else []:
            # It cannot start, whatever its place.
            reasons = [*circle, *(each for each in reasons if each.code != "first_in_lane")]
    if not found.is_published:
        reasons = await with_nearest_type(db, reasons, found.job_type, seen_types)
    if found.ahead and reader is not None:
        reasons = _with_own(reasons, await db.run(own_ahead(job_id, reader)))
    starts_in_s = estimate_start(job, found, {reason.code for reason in reasons})
    return Explanation.of(job, reasons, starts_in_s, _run_time(found))


def _waiting(job: Job, found: Facts, open_parents: OpenParents | None) -> list[Reason]:
    """The reasons of a waiting job; also why no worker can run it, if only a worker continues it.

    A time that is over is noticed by a worker, so without one the job waits on.
    """
    reasons = [*waiting_reasons(job, open_parents, found.read_at), *_time(job, found)]
    wait = job.waits_for
    if wait is None or wait.kind not in ("event", "sleep"):
        return reasons
    if wait.is_over(found.read_at):
        return [*worker_reasons(found), *reasons]
    # A worker that is full or silent now may be available at the end of the wait.
    return reasons if found.serving else [*reasons, *worker_reasons(found)]


def _run_time(found: Facts) -> float | None:
    return None if found.run_s is None else round(found.run_s, 3)


def reasons_of(
    job: Job, found: Facts, renewed_at: float, blockers: Sequence[Blocker] = ()
) -> list[Reason]:
    """The reasons by the facts; workers renew a lease after `renewed_at` of its length."""
    if job.status in TERMINAL:
        return [_ended(job)]
    if job.status is Status.RUNNING:
        return _running(job, found, _late_renewal(job, found, renewed_at))
    if job.status is Status.PENDING and job.claimed_at is not None:
        return _analysing(job, _late_renewal(job, found, renewed_at))
    blocks = [*_time(job, found), *_gates(found), *worker_reasons(found), *_locks(blockers)]
    if job.status is Status.PENDING:
        # Limits and keys apply to runs only.
        blocks.insert(0, Reason("pending", "its analysis has not started yet"))
    else:
        blocks += [*_limits(found), *_key(found)]
    if job.status is Status.AWAITING_APPROVAL:
        blocks.insert(0, _approval(job, found))
    elif job.status is Status.APPROVED and found.sent_back_to is not None:
        blocks.insert(0, _sent_back(job, found.sent_back_to))
    return [*blocks, *_place(found, is_blocked=bool(blocks)), *_published(found)]


def _approval(job: Job, found: Facts) -> Reason:
    approver = "anyone who may approve"
    if found.two_person:
        approver = f"another person (not {excluded_approver(job.created_by)})"
    expiry = f"; the request expires at {moment(job.expires_at)}" if job.expires_at else ""
    return Reason(
        "awaiting_approval",
        f"it waits for an approval (`laneway jobs approve {job.id}`) by {approver}{expiry}",
    )


def _sent_back(job: Job, status: str) -> Reason:
    lacks = "an analysis" if status == Status.PENDING else "an approval"
    return Reason(
        "approval_missing",
        f"its type {job.job_type} now needs {lacks}, which it does not have: the next claim "
        f"returns it to {status} instead of starting it",
    )


def _ended(job: Job) -> Reason:
    hint = "" if job.status is Status.COMPLETED else f"; {_retry_hint(job)}"
    return Reason(job.status.value, f"it has ended: {job.status.value}{job.why_ended}{hint}")


def _retry_hint(job: Job) -> str:
    if job.status is Status.FAILED and job.error is not None and job.error.type == _TIMED_OUT:
        return (
            "a retry meets the same timeout, because its wait stays over: submit the job again, or"
            " let its handler catch TimeoutError and retry it then"
        )
    return "`laneway jobs retry` runs it again"


def _running(job: Job, found: Facts, late: list[Reason]) -> list[Reason]:
    how = "it is leased" if late else "it runs"
    reasons = [Reason("running", f"{how}: attempt {job.attempt} on {job.worker or job.claimed_by}")]
    if found.waits_for:
        jobs_waited = listed([str(each) for each in found.waits_for])
        one = "job" if len(found.waits_for) == 1 else "jobs"
        reasons.append(Reason("waits_for_job", f"its handler waits for {one} {jobs_waited}"))
    if job.cancel_requested_at is not None:
        reasons.append(
            Reason("cancel_requested", "its worker was asked to stop it and has not yet done so")
        )
    return reasons + late


def _analysing(job: Job, late: list[Reason]) -> list[Reason]:
    how = "is leased" if late else "runs"
    return [Reason("pending", f"its analysis {how} on {job.worker or job.claimed_by}"), *late]


def _late_renewal(job: Job, found: Facts, renewed_at: float) -> list[Reason]:
    """The reason if the worker should have renewed the lease by now."""
    if found.lapsed_s is None or found.lease_s is None or found.lease_until is None:
        return []
    silent_s = found.lapsed_s + found.lease_s
    # A renewal takes some time, and a failed one is repeated.
    is_late = silent_s > found.lease_s * (renewed_at + (1 - renewed_at) * _TOLERANCE)
    if not is_late or job.lease_until != found.lease_until:
        return []
    since = found.lease_until - timedelta(seconds=found.lease_s)
    text = f"its worker has not renewed its lease since {moment(since)}, {silent_s:.0f} s ago"
    if found.lapsed_s > 0:
        code, then = "lease_lapsed", ""
        text += f"; the lease lapsed {found.lapsed_s:.0f} s ago"
    else:
        code, then = "worker_silent", "then "
        left = f"{-found.lapsed_s:.0f} s, at {moment(found.lease_until)}"
        text += f"; the lease lapses in {left}"
    if found.is_watched:
        return [Reason(code, f"{text}: {then}another worker or server takes the job back")]
    unseen = f"no other worker or server reported in the last {SILENT_S:.0f} s"
    cure = "one must run to take the job back: `laneway worker APP`"
    return [Reason(code, f"{text}; {unseen}, and {cure}")]


def _time(job: Job, found: Facts) -> list[Reason]:
    if found.due_in_s is None or found.due_in_s <= 0:
        return []
    why = f" (retry {job.retries} of {job.max_retries})" if job.retries else ""
    at = f", at {moment(job.run_at)}" if job.run_at else ""
    return [Reason("delayed", f"it is due in {found.due_in_s:.0f} s{at}{why}")]


def _gates(found: Facts) -> list[Reason]:
    reasons = []
    if found.paused:
        by = f" by {found.paused_by}" if found.paused_by else ""
        reasons.append(
            Reason("paused", f"all lanes are paused{by}: nothing starts until `laneway resume`")
        )
    if found.enabled is False:
        reasons.append(
            Reason(
                "lane_disabled",
                f"the lane {found.lane} is drained: nothing starts in it until"
                f" `laneway lanes resume {found.lane}`",
            )
        )
    if found.max_slots == 0:
        reasons.append(
            Reason(
                "no_slots",
                f"the lane {found.lane} has max_slots 0: nothing starts in it until"
                f" `laneway lanes set {found.lane} --max-slots N`",
            )
        )
    elif found.max_slots is not None and found.slots_used >= found.max_slots:
        held = ", ".join(str(holder) for holder in found.holders)
        more = found.slots_used - len(found.holders)
        rest = f" and {more} more" if held and more > 0 else ""
        by = f", held by {held}{rest}" if held else ""
        reasons.append(
            Reason(
                "slots_full",
                f"{found.slots_used} of {found.max_slots} slots of the lane {found.lane} "
                f"are in use{by}; `laneway lanes set {found.lane} --max-slots N` adds slots",
            )
        )
    return reasons


def _limits(found: Facts) -> list[Reason]:
    reasons = []
    for limit in found.limits:
        if not limit.is_blocking:
            continue
        held = ", ".join(str(holder) for holder in limit.holders)
        if limit.max_concurrent == 0:
            reasons.append(
                Reason(
                    "limit_zero",
                    f"the limit {limit.name} has max_concurrent 0: nothing that needs it starts"
                    f" until `laneway limits set {quote(limit.name)} --max-concurrent N`",
                )
            )
            continue
        if limit.room:
            line = f"room for {limit.room} more, but {limit.before} jobs that need it go first"
        else:
            line = f"fully used, held by {held}" if held else "fully used"
        if limit.next_lane is not None:
            line += f"; next turn: lane {limit.next_lane}, priority {limit.next_priority}"
        reasons.append(Reason("limit", f"the limit {limit.name}: {line}"))
    return reasons


def _key(found: Facts) -> list[Reason]:
    if found.key_holder is None and not found.key_waits:
        return []
    before = f"; {found.key_ahead} wait for it before this one" if found.key_ahead else ""
    state = f"held by job {found.key_holder}" if found.key_holder else "about to be passed on"
    return [Reason("key", f"its concurrency_key is {state}{before}")]


def _place(found: Facts, *, is_blocked: bool) -> list[Reason]:
    if found.ahead is None and is_blocked:
        return []
    if found.ahead:
        many = _capped_count(found.ahead)
        jobs_wait = "job waits" if found.ahead == 1 else "jobs wait"
        held_up = found.ahead - (found.can_run or 0)
        rest = f", {held_up:,} of them held up by limits" if held_up else ""
        if found.passed:
            rest += f", besides {_capped_count(found.passed)} that no live worker handles"
        return [
            Reason("behind_others", f"{many} {jobs_wait} before it in the lane {found.lane}{rest}"),
        ]
    if is_blocked:
        return [Reason("first_in_lane", f"it is the first to start in the lane {found.lane}")]
    return [Reason("about_to_start", "nothing blocks it: a worker will claim it shortly")]


def _capped_count(count: int) -> str:
    return f"{BOUND:,}+" if count > BOUND else f"{count:,}"


def _with_own(reasons: list[Reason], own: list[UUID]) -> list[Reason]:
    """The reasons, with the reader's own jobs that wait before this one."""
    if not own:
        return reasons
    named = f"; of your own, these come first: {', '.join(map(str, own))}"
    return [
        Reason(each.code, each.message + named) if each.code == "behind_others" else each
        for each in reasons
    ]


def _locks(blockers: Sequence[Blocker]) -> list[Reason]:
    return [
        Reason(
            "locked",
            f"{one.describe()}: claims wait for it; `{one.end_command}` ends it",
        )
        for one in blockers
    ]


def _published(found: Facts) -> list[Reason]:
    if found.is_published:
        return []
    return [
        Reason("type_unpublished", f"no worker has ever published the job type {found.job_type}")
    ]
