"""The laws of every history, whatever was killed, stopped or cut off during the run.

Each law is a pure function that yields its violations. `check` applies all of them.

    for violation in check(history, final):
        print(violation)
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from laneway.testing.edge_laws import after_its_parents
from laneway.testing.history import Final, History, HistoryEvent
from laneway.testing.violation import Violation

TERMINAL = frozenset({"completed", "failed", "cancelled"})
# Outcomes that do not spend the retry budget.
FREE = frozenset({"released", "snoozed", "waited"})
# Attempts of an analysis, which has a separate budget.
ANALYSES = 3


def nothing_lost(history: History, final: Final) -> Iterator[Violation]:
    """I1: every acknowledged job exists, in exactly one place."""
    for event in history.of("submit"):
        if event.more["phase"] == "ok" and event.job is not None:
            job = final.jobs.get(event.job)
            if job is None:
                yield Violation("I1", event.job, "acknowledged, but in no table")
            elif job.status is None:
                yield Violation("I1", event.job, "acknowledged, but in no state")


def nothing_unexpected(history: History, final: Final) -> Iterator[Violation]:
    """I2: each submit made at most one job, and a key had at most one live job at any time."""
    phases = defaultdict(set)
    for event in history.of("submit"):
        phases[event.more["op"]].add(event.more["phase"])
    for event in history.of("slot"):
        phases[f"schedule:{event.more['schedule']} {event.more['slot']}"].add("ok")
    # Handlers submit sub-jobs.
    owned = {event.job for event in history.of("linked") if event.more["owner"] is not None}
    for event in history.of("born"):
        if event.job in owned:
            phases[event.more.get("op")].add("ok")
    made = Counter(job.op for job in final.jobs.values())
    for op, count in made.items():
        if op not in phases:
            yield Violation("I2", None, f"{count} jobs without a submit: op {op}")
        elif count > 1:
            yield Violation("I2", None, f"one submit made {count} jobs: op {op}")
        elif phases[op] & {"fail"}:
            yield Violation("I2", None, f"a refused submit made a job: op {op}")
    keys = {event.job: event.more.get("unique_key") for event in history.of("born")}
    alive: dict[str, str] = {}
    for event in history.of("born", "outcome", "reopened"):
        key = keys.get(event.job)
        if key is None or event.job is None:
            continue
        if event.what == "outcome":
            if alive.get(key) == event.job:
                del alive[key]
        elif alive.setdefault(key, event.job) != event.job:
            yield Violation("I2", event.job, f"a second live job of unique_key {key}")


def one_terminal_write(history: History, final: Final) -> Iterator[Violation]:
    """I3: a job ends once, and only an operator's retry leaves a terminal state."""
    for job, events in history.per_job("outcome", "reopened", "claim").items():
        ended = False
        for event in events:
            if event.what == "outcome":
                if ended:
                    yield Violation("I3", job, f"ended again, as {event.more['status']}")
                ended = True
            elif event.what == "reopened":
                if not event.more.get("by_operator"):
                    yield Violation("I3", job, "left a terminal state without an operator")
                ended = False
            elif ended:
                yield Violation("I3", job, f"attempt {event.attempt} claimed after the end")


def tokens_grow(history: History, final: Final) -> Iterator[Violation]:
    """I4: attempts of a job are 1, 2, 3 … in the order of its claims."""
    for job, claims in history.per_job("claim").items():
        attempts = [claim.attempt for claim in claims]
        if attempts != list(range(1, len(attempts) + 1)):
            yield Violation("I4", job, f"attempts in order of claim: {attempts}")


def writes_are_fenced(history: History, final: Final) -> Iterator[Violation]:
    """I5: a write changes only the attempt that it names, and only while that attempt runs."""
    named = defaultdict(set)
    for write in history.of("write"):
        named[write.tx, write.job].add(write.attempt)
    newest: dict[str | None, int] = {}
    for event in history.of("claim", "renew", "progress", "log", "end"):
        attempt = event.attempt or 0
        if event.what == "claim":
            newest[event.job] = max(attempt, newest.get(event.job, 0))
            continue
        given = named.get((event.tx, event.job))
        if given and attempt not in given:
            names = ", ".join(map(str, sorted(a or 0 for a in given)))
            yield Violation(
                "I5", event.job, f"a write of attempt {names} did {event.what} {attempt}"
            )
        elif attempt < newest.get(event.job, 0):
            yield Violation(
                "I5", event.job, f"{event.what} of attempt {attempt} after a newer claim"
            )


def claims_do_not_overlap(history: History, final: Final) -> Iterator[Violation]:
    """I6: a claim follows the end of the previous one; live workers keep their leases."""
    deaths: dict[int, float] = {}
    for death in history.of("death"):
        deaths.setdefault(death.more["pid"], death.at)
    pids = {event.more["worker"]: event.more["pid"] for event in history.of("worker")}
    verdicts = {(write.tx, write.job): write.more["verb"] for write in history.of("write")}
    for job, events in history.per_job("claim", "end").items():
        held: HistoryEvent | None = None
        for event in events:
            if event.what == "claim":
                if held is not None:
                    yield Violation("I6", job, f"{event.attempt} claimed while {held.attempt} runs")
                elif event.at < _end(events, event):
                    yield Violation("I6", job, f"{event.attempt} claimed too early")
                held = event
                continue
            held = None
            died_at = deaths.get(pids.get(event.more["worker"], -1), math.inf)
            taken_early = event.at < event.more["lease_until"] and event.at < died_at
            if verdicts.get((event.tx, job)) == "lost" and taken_early:
                yield Violation("I6", job, f"{event.attempt} taken from a live worker too early")


def _end(events: list[HistoryEvent], claim: HistoryEvent) -> float:
    """The end of the previous attempts, by the database's clock."""
    return max(
        (e.at for e in events if e.what == "end" and (e.attempt or 0) < (claim.attempt or 0)),
        default=-math.inf,
    )


def effects_are_fenced(history: History, final: Final) -> Iterator[Violation]:
    """I7: a sink that compares attempts accepts only growing ones."""
    for job, effects in history.per_job("effect").items():
        newest = 0
        for effect in effects:
            attempt = effect.attempt or 0
            if effect.more["accepted"] and attempt <= newest:
                yield Violation("I7", job, f"an effect of {attempt} after one of {newest}")
            if effect.more["accepted"]:
                newest = max(newest, attempt)


def within_budget(history: History, final: Final) -> Iterator[Violation]:
    """I8: starts stay within the budget; each attempt starts once, after its claim and run_at."""
    born = {event.job: event for event in history.of("born")}
    kept = history.per_job("kept")
    reopened = history.per_job("reopened")
    claimed = {(event.job, event.attempt) for event in history.of("claim")}
    for job, claims in history.per_job("claim").items():
        birth = born.get(job)
        if birth is None:
            continue
        free = {event.attempt for event in kept.get(job, []) if _is_free(event)}
        runs = [claim for claim in claims if not claim.more.get("analysis")]
        tries = [claim for claim in claims if claim.more.get("analysis")]
        for starts, budget in ((runs, 1 + birth.more["max_retries"]), (tries, ANALYSES)):
            uncharged = sum(claim.attempt in free for claim in starts)
            most = budget * (1 + len(reopened.get(job, []))) + uncharged
            if len(starts) > most:
                yield Violation("I8", job, f"{len(starts)} starts where {most} are allowed")
        run_at = birth.more.get("run_at")
        if run_at is not None and runs and runs[0].at < run_at:
            yield Violation("I8", job, f"started {run_at - runs[0].at:.3f} s too early")
    started = Counter((event.job, event.attempt) for event in history.of("start"))
    for (started_job, attempt), count in started.items():
        if count > 1:
            yield Violation("I8", started_job, f"attempt {attempt} was started {count} times")
        if (started_job, attempt) not in claimed:
            yield Violation("I8", started_job, f"attempt {attempt} was started without a claim")


def _is_free(kept: HistoryEvent) -> bool:
    """Whether an attempt ended without charge; the message of a loss shows it."""
    error = kept.more.get("error") or {}
    return kept.more["outcome"] in FREE or "not charged" in str(error.get("message"))


def within_slots(history: History, final: Final) -> Iterator[Violation]:
    """I9: no lane ever runs more jobs than its slots, and no slot leaks."""
    for event in history.of("snapshot"):
        for lane, running in event.more["running"].items():
            limit = event.more["limits"].get(lane)
            if limit is not None and running > limit:
                yield Violation("I9", None, f"{running} jobs run in lane {lane} of {limit} slots")
    if final.slots and not any(job.status in ("running", "pending") for job in final.jobs.values()):
        yield Violation("I9", None, f"{final.slots} slots are taken, but no job runs")


def within_limits(history: History, final: Final) -> Iterator[Violation]:
    """I9: no limit has too many holders, no key has two; after the last job none has any."""
    for event in history.of("snapshot"):
        for limit, held in event.more.get("held", {}).items():
            ceiling = event.more["ceilings"].get(limit)
            if ceiling is not None and held > ceiling:
                yield Violation("I9", None, f"{held} hold the limit {limit} of {ceiling}")
        for key, held in event.more.get("shared", {}).items():
            yield Violation("I9", None, f"{held} hold the key {key}")
    if any(job.status not in TERMINAL for job in final.jobs.values()):
        return
    if final.limits:
        yield Violation("I9", None, f"{final.limits} holds of limits leaked")
    if final.keys:
        yield Violation("I9", None, f"{final.keys} keys are still held or waited for")


def one_leader(history: History, final: Final) -> Iterator[Violation]:
    """I10: leadership changes only after it has expired, and every epoch is new."""
    epoch = 0
    for event in history.of("leader"):
        if event.more["epoch"] <= epoch:
            yield Violation("I10", None, f"epoch {event.more['epoch']} after {epoch}")
        epoch = max(epoch, event.more["epoch"])
        overlap = event.more["held_until"] - event.at
        if overlap > 0:
            yield Violation("I10", None, f"two leaders for {overlap:.3f} s")


def one_job_per_slot(history: History, final: Final) -> Iterator[Violation]:
    """I10: a schedule's slot has one outcome and at most one job; its job has one slot."""
    slots = Counter((slot.more["schedule"], slot.more["slot"]) for slot in history.of("slot"))
    for (schedule, slot), count in slots.items():
        if count > 1:
            yield Violation("I10", None, f"slot {slot} of schedule {schedule} ran {count} times")
    born = {event.job for event in history.of("born")}
    named = {slot.more["made"] for slot in history.of("slot") if slot.more["made"] is not None}
    for job in sorted(named - born):
        yield Violation("I10", job, "named by a slot, but never stored")
    for event in history.of("born"):
        if _is_scheduled(event) and event.job not in named:
            yield Violation("I10", event.job, f"made by {event.more['created_by']} without a slot")


def _is_scheduled(birth: HistoryEvent) -> bool:
    return str(birth.more.get("created_by")).startswith("schedule:")


def cancel_holds(history: History, final: Final) -> Iterator[Violation]:
    """I11: a job cancelled while waiting never starts; one cancelled while running ends so."""
    for job, events in history.per_job("outcome", "cancel_requested", "claim", "reopened").items():
        is_requested, is_cancelled = False, False
        for event in events:
            if event.what == "reopened":
                is_requested, is_cancelled = False, False
            elif event.what == "cancel_requested":
                is_requested = True
            elif event.what == "claim" and (is_requested or is_cancelled):
                yield Violation("I11", job, f"attempt {event.attempt} started after its cancel")
            elif event.what == "outcome":
                if is_requested and event.more["status"] != "cancelled":
                    yield Violation("I11", job, f"{event.more['status']} after its cancel")
                is_cancelled = event.more["status"] == "cancelled" and not event.more["claimed"]
    for event in history.of("cancel"):
        found = final.jobs.get(event.job or "")
        if event.more["phase"] == "ok" and (found is None or found.status != "cancelled"):
            status = found.status if found else "gone"
            yield Violation("I11", event.job, f"{status} though its cancel was acknowledged")


def drained(history: History, final: Final) -> Iterator[Violation]:
    """I12: in the end every job is terminal, and no lapsed lease is left."""
    for job in final.jobs.values():
        if job.status not in TERMINAL:
            yield Violation("I12", job.job, f"still {job.status}, attempt {job.attempt}")
    if final.lapsed:
        yield Violation("I12", None, f"{final.lapsed} leases lapsed and were not taken back")


def decisions_are_kept(history: History, final: Final) -> Iterator[Violation]:
    """I14: a job is decided about once, by the principal that got the acknowledgement."""
    asked = defaultdict(set)
    for event in history.of("decide"):
        asked[event.job, event.more["who"], event.more["decision"]].add(event.more["phase"])
    made = Counter((e.job, e.more["who"], e.more["decision"]) for e in history.of("decision"))
    people = {by for _, by, _ in asked}
    for (job, by, decision), phases in asked.items():
        if "ok" in phases and not made[job, by, decision]:
            yield Violation("I14", job, f"{decision} by {by} was acknowledged, but is lost")
        if "fail" in phases and made[job, by, decision]:
            yield Violation("I14", job, f"{decision} by {by} was refused, but is stored")
    for (job, by, decision), count in made.items():
        if by in people and (job, by, decision) not in asked:
            yield Violation("I14", job, f"{decision} by {by} was never requested")
        elif count > 1:
            yield Violation("I14", job, f"{decision} {count} times by {by}")
    reopened = history.per_job("reopened")
    for decided, events in history.per_job("decision").items():
        if len(events) > 1 + len(reopened.get(decided, [])):
            listed = ", ".join(f"{e.more['decision']} by {e.more['who']}" for e in events)
            yield Violation("I14", decided, f"decided {len(events)} times: {listed}")


def approved_before_run(history: History, final: Final) -> Iterator[Violation]:
    """I15: a job that needs an approval runs only with the approved payload."""
    needing = {event.job for event in history.of("born") if event.more.get("needs") == "approval"}
    started = {(event.job, event.attempt) for event in history.of("start")}
    for job, events in history.per_job("decision", "claim").items():
        approved: object = None
        for event in events:
            if event.what == "decision":
                is_approval = event.more["decision"] in ("approved", "automatic")
                approved = event.more["payload"] if is_approval else None
            elif job in needing and (job, event.attempt) in started:
                if approved is None:
                    yield Violation("I15", job, f"attempt {event.attempt} ran without an approval")
                elif event.more["payload"] != approved:
                    yield Violation("I15", job, f"attempt {event.attempt} ran another payload")


Law = Callable[[History, Final], Iterator[Violation]]
LAWS: tuple[Law, ...] = (
    nothing_lost,
    nothing_unexpected,
    one_terminal_write,
    tokens_grow,
    writes_are_fenced,
    claims_do_not_overlap,
    effects_are_fenced,
    within_budget,
    within_slots,
    within_limits,
    one_leader,
    one_job_per_slot,
    cancel_holds,
    drained,
    decisions_are_kept,
    approved_before_run,
    after_its_parents,
)


def check(history: History, final: Final) -> list[Violation]:
    """All violations of all laws."""
    return [violation for law in LAWS for violation in law(history, final)]


class Stale(NamedTuple):
    """Writes that named an attempt after a newer one was claimed, by their result."""

    refused: list[HistoryEvent]
    accepted: list[Violation]


def stale_writes(history: History, final: Final) -> Stale:
    """Refused and accepted stale writes.

    A repeated write gets the answer of the first one; it is in neither list.
    """
    newest: dict[str | None, int] = {}
    refused = []
    for event in history.of("claim", "write"):
        if event.what == "claim":
            newest[event.job] = max(event.attempt or 0, newest.get(event.job, 0))
        elif (event.attempt or 0) < newest.get(event.job, 0) and event.more["answer"] == "fenced":
            refused.append(event)
    return Stale(refused, list(writes_are_fenced(history, final)))


def overlaps(history: History) -> int:
    """The number of handler runs that began while an older attempt still ran; this is allowed."""
    deaths = {death.more["pid"]: death.more["t"] for death in history.of("death")}
    count = 0
    for events in history.per_job("start", "stop").values():
        running: dict[int | None, int] = {}
        for event in sorted(events, key=lambda event: float(event.more["t"])):
            if event.what == "stop":
                running.pop(event.attempt, None)
                continue
            t = event.more["t"]
            count += any(deaths.get(pid, math.inf) > t for pid in running.values())
            running[event.attempt] = event.more["pid"]
    return count
