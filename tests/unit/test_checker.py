"""Each law of the checker holds for a lawful history and fails for a falsified one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from laneway.testing.checker import LAWS, check, overlaps, stale_writes
from laneway.testing.history import Final, FinalJob, History, HistoryEvent

HistoryAndFinal = tuple[History, Final]


def lawful() -> HistoryAndFinal:
    """Two jobs: `a` is lost by a dead worker and completed by another, `b` is cancelled early."""
    history = History()
    for job in "ab":
        history.add("submit", op=f"op-{job}", phase="invoke")
        history.add("submit", job, op=f"op-{job}", phase="ok")
        history.add(
            "born", job, n=1, at=1.0, op=f"op-{job}", unique_key=f"key-{job}", max_retries=1
        )
    history.add("worker", n=2, worker="w1", pid=11)
    history.add("worker", n=2, worker="w2", pid=12)
    history.add("leader", n=2, at=1.0, holder="w1", epoch=1, held_until=0)
    history.add("claim", "a", 1, n=3, tx=3, at=2.0, worker="w1", lane="x", lease_until=4.0)
    history.add("start", "a", 1, pid=11, t=2.0)
    history.add("effect", "a", 1, n=4, accepted=True)
    history.add("snapshot", running={"x": 1}, limits={"x": 1})
    history.add("renew", "a", 1, n=5, tx=5, at=3.0, lease_until=5.0)
    history.add("write", "a", 1, n=6, tx=5, verb="heartbeat", answer="accepted")
    history.add("death", at=3.5, pid=11, t=3.5)
    history.add("leader", n=7, at=4.5, holder="w2", epoch=2, held_until=4.0)
    history.add("end", "a", 1, n=8, tx=8, at=5.1, worker="w1", lease_until=5.0)
    history.add("kept", "a", 1, n=9, tx=8, outcome="lost")
    history.add("write", "a", 1, n=10, tx=8, verb="lost", answer="accepted")
    history.add("claim", "a", 2, n=11, tx=11, at=5.3, worker="w2", lane="x", lease_until=7.3)
    history.add("start", "a", 2, pid=12, t=5.3)
    history.add("effect", "a", 2, n=12, accepted=True)
    history.add("write", "a", 1, n=13, tx=13, verb="finish", answer="fenced")
    history.add("progress", "a", 2, n=14, tx=14)
    history.add("write", "a", 2, n=15, tx=14, verb="report", answer="accepted")
    history.add("stop", "a", 2, pid=12, t=6.0)
    history.add("end", "a", 2, n=16, tx=16, at=6.0, worker="w2", lease_until=7.3)
    history.add("outcome", "a", 2, n=17, tx=16, status="completed", claimed=True)
    history.add("write", "a", 2, n=18, tx=16, verb="finish", answer="accepted")
    history.add("outcome", "b", 0, n=19, tx=19, status="cancelled", claimed=False)
    history.add("cancel", "b", phase="ok", found="approved")
    approved(history)
    scheduled(history)
    linked(history)
    final = Final(
        {
            "a": FinalJob("a", "op-a", "completed", 2, 1, 1),
            "b": FinalJob("b", "op-b", "cancelled"),
            "g": FinalJob("g", "op-g", "completed", 2),
            "s": FinalJob("s", "schedule:night 60", "completed", 1),
            "c": FinalJob("c", "op-c", "completed", 2),
        }
    )
    return history, final


def approved(history: History) -> None:
    """`g` is analyzed, approved by one of two concurrent approvers, and completed."""
    history.add("submit", op="op-g", phase="invoke")
    history.add("submit", "g", op="op-g", phase="ok")
    history.add("born", "g", n=40, at=1.0, op="op-g", max_retries=0, needs="approval")
    claim = {"worker": "w2", "lane": "x", "payload": "as it was"}
    history.add("claim", "g", 1, n=41, at=8.0, lease_until=10.0, analysis=True, **claim)
    history.add("end", "g", 1, n=42, at=8.1, worker="w2", lease_until=10.0)
    history.add("kept", "g", 1, n=43, outcome="analyzed")
    for who, phase in (("ada", "ok"), ("bob", "fail")):
        history.add("decide", "g", who=who, decision="approved", phase="invoke")
        history.add("decide", "g", who=who, decision="approved", phase=phase)
    history.add("decision", "g", n=44, who="ada", decision="approved", payload="as it was")
    history.add("claim", "g", 2, n=45, at=9.0, lease_until=11.0, analysis=False, **claim)
    history.add("start", "g", 2, pid=12, t=9.0)
    history.add("stop", "g", 2, pid=12, t=9.1)
    history.add("end", "g", 2, n=46, at=9.2, worker="w2", lease_until=11.0)
    history.add("outcome", "g", 2, n=47, status="completed", claimed=True)


def scheduled(history: History) -> None:
    """`s` is the job of a schedule's only slot; limits and keys are held lawfully."""
    history.add("born", "s", n=50, op=None, max_retries=0, created_by="schedule:night")
    history.add("slot", n=51, schedule="night", slot=60, outcome="submitted", made="s")
    history.add("claim", "s", 1, n=52, at=9.0, worker="w2", lane="x", lease_until=11.0)
    history.add("end", "s", 1, n=53, at=9.2, worker="w2", lease_until=11.0)
    history.add("outcome", "s", 1, n=54, status="completed", claimed=True)
    history.add("snapshot", running={}, limits={}, held={"api": 2}, ceilings={"api": 2}, shared={})


def linked(history: History) -> None:
    """`c` is a sub-job of `g`, comes after `s`, and waits once."""
    history.add("born", "c", n=60, op="op-c", max_retries=0)
    history.add("linked", "c", n=61, owner="g", parents=["s"], rule="cancel")
    for attempt in (1, 2):
        n = 60 + 10 * attempt
        lease = {"worker": "w2", "lane": "x", "lease_until": 20.0}
        history.add("claim", "c", attempt, n=n, at=9.0 + attempt, **lease)
        history.add("end", "c", attempt, n=n + 1, at=9.1 + attempt, worker="w2", lease_until=20.0)
    history.add("kept", "c", 1, n=72, outcome="waited")
    history.add("outcome", "c", 2, n=82, status="completed", claimed=True)


def without(history: History, what: str, **more: object) -> History:
    return History(
        event
        for event in history
        if event.what != what or not all(event.more.get(k) == v for k, v in more.items())
    )


def changed(history: History, what: str, **fields: object) -> History:
    """Replace fields of all events of a kind, including those in `more`."""
    own = {k: v for k, v in fields.items() if k in HistoryEvent.__dataclass_fields__}
    more = {k: v for k, v in fields.items() if k not in own}
    return History(
        replace(e, more={**e.more, **more}, **own) if e.what == what else e  # type: ignore[arg-type]
        for e in history
    )


def plus(history: History, what: str, job: str | None = None, attempt: int | None = None,
         **rest: object) -> History:  # fmt: skip
    more = History(history)
    more.add(what, job, attempt, **rest)
    return more


def job(final: Final, name: str, **fields: object) -> Final:
    return replace(final, jobs={**final.jobs, name: replace(final.jobs[name], **fields)})  # type: ignore[arg-type]


def gone(final: Final, name: str) -> Final:
    return replace(final, jobs={k: v for k, v in final.jobs.items() if k != name})


DOCTORED: dict[str, tuple[str, Callable[[History, Final], HistoryAndFinal]]] = {
    "sub-job without its owner": ("I2", lambda h, f: (changed(h, "linked", owner=None), f)),
    "sub-job was submitted twice": (
        "I2",
        lambda h, f: (h, replace(f, jobs={**f.jobs, "d": FinalJob("d", "op-c", "completed")})),
    ),
    "wait spent the budget": ("I8", lambda h, f: (changed(h, "kept", outcome="failed"), f)),
    "claimed before its parent ended": (
        "I16",
        lambda h, f: (changed(h, "linked", parents=["s", "z"]), f),
    ),
    "claimed after its parent was cancelled": (
        "I16",
        lambda h, f: (changed(h, "linked", parents=["b"]), f),
    ),
    "acked job is gone": ("I1", lambda h, f: (h, gone(f, "a"))),
    "acked job is in no table": ("I1", lambda h, f: (h, job(f, "a", status=None))),
    "job that was never submitted": (
        "I2",
        lambda h, f: (h, replace(f, jobs={**f.jobs, "x": FinalJob("x", "op-x", "completed")})),
    ),
    "one submit made two jobs": (
        "I2",
        lambda h, f: (h, replace(f, jobs={**f.jobs, "x": FinalJob("x", "op-a", "completed")})),
    ),
    "refused submit made a job": (
        "I2",
        lambda h, f: (plus(h, "submit", op="op-a", phase="fail"), f),
    ),
    "two live jobs of one key": (
        "I2",
        lambda h, f: (plus(h, "born", "x", n=15, unique_key="key-a", max_retries=0), f),
    ),
    "ended twice": (
        "I3",
        lambda h, f: (plus(h, "outcome", "a", 2, n=30, status="failed", claimed=True), f),
    ),
    "left a terminal state": ("I3", lambda h, f: (plus(h, "reopened", "a", 2, n=30), f)),
    "claimed after its end": (
        "I3",
        lambda h, f: (
            plus(h, "claim", "a", 3, n=30, at=9.0, worker="w2", lane="x", lease_until=11.0),
            f,
        ),
    ),
    "an attempt used twice": (
        "I4",
        lambda h, f: (changed(h, "claim", attempt=1), f),
    ),
    "a stale finish ended a newer attempt": (
        "I5",
        lambda h, f: (changed(h, "end", tx=13), f),
    ),
    "a stale heartbeat renewed a newer attempt": (
        "I5",
        lambda h, f: (
            plus(
                plus(h, "renew", "a", 2, n=14, tx=20, at=5.5, lease_until=9.0),
                "write", "a", 1, n=15, tx=20, verb="heartbeat", answer="fenced",
            ),
            f,
        ),
    ),
    "stale progress was stored": ("I5", lambda h, f: (changed(h, "progress", attempt=1), f)),
    "a stale log line was stored": ("I5", lambda h, f: (plus(h, "log", "a", 1, n=14), f)),
    "claimed while the one before runs": ("I6", lambda h, f: (without(h, "end"), f)),
    "claimed before the one before ended": (
        "I6",
        lambda h, f: (changed(h, "end", at=6.5), f),
    ),
    "taken from a live worker before its time": (
        "I6",
        lambda h, f: (changed(without(h, "death"), "end", lease_until=5.5), f),
    ),
    "a stale effect was taken": (
        "I7",
        lambda h, f: (plus(h, "effect", "a", 1, n=20, accepted=True), f),
    ),
    "more starts than the budget": ("I8", lambda h, f: (changed(h, "born", max_retries=0), f)),
    "started before its time": ("I8", lambda h, f: (changed(h, "born", run_at=2.5), f)),
    "an attempt was started twice": (
        "I8",
        lambda h, f: (plus(h, "start", "a", 2, pid=13, t=5.4), f),
    ),
    "started without a claim": ("I8", lambda h, f: (plus(h, "start", "a", 7, pid=13, t=9), f)),
    "more running than slots": (
        "I9",
        lambda h, f: (changed(h, "snapshot", running={"x": 2}), f),
    ),
    "slots without a holder": ("I9", lambda h, f: (h, replace(f, slots=1))),
    "more holders than the limit": (
        "I9",
        lambda h, f: (changed(h, "snapshot", held={"api": 3}, ceilings={"api": 2}), f),
    ),
    "two hold one key": ("I9", lambda h, f: (changed(h, "snapshot", shared={"k": 2}), f)),
    "a limit without a holder": ("I9", lambda h, f: (h, replace(f, limits=1))),
    "a key without a holder": ("I9", lambda h, f: (h, replace(f, keys=1))),
    "a slot came twice": (
        "I10",
        lambda h, f: (
            plus(h, "slot", n=60, schedule="night", slot=60, outcome="submitted", made="s"), f
        ),
    ),
    "a slot without its job": (
        "I10",
        lambda h, f: (
            plus(h, "slot", n=60, schedule="night", slot=61, outcome="submitted", made="t"), f
        ),
    ),
    "a schedule's job without a slot": ("I10", lambda h, f: (without(h, "slot"), f)),
    "two leaders at once": ("I10", lambda h, f: (changed(h, "leader", held_until=4.6), f)),
    "an epoch twice": ("I10", lambda h, f: (changed(h, "leader", epoch=1), f)),
    "started after its cancel": (
        "I11",
        lambda h, f: (
            plus(h, "claim", "b", 1, n=30, at=9.0, worker="w2", lane="x", lease_until=11.0),
            f,
        ),
    ),
    "completed after its cancel": (
        "I11",
        lambda h, f: (plus(h, "cancel_requested", "a", 2, n=14), f),
    ),
    "a cancel without consequence": (
        "I11",
        lambda h, f: (h, job(f, "b", status="completed")),
    ),
    "still running": ("I12", lambda h, f: (h, job(f, "a", status="running"))),
    "lapsed and left": ("I12", lambda h, f: (h, replace(f, lapsed=1))),
    "a decision is lost": ("I14", lambda h, f: (without(h, "decision"), f)),
    "a refused decision counts": (
        "I14",
        lambda h, f: (
            plus(h, "decision", "g", n=60, who="bob", decision="approved", payload=""), f
        ),
    ),
    "decided by one who did not": (
        "I14",
        lambda h, f: (changed(h, "decision", decision="rejected"), f),
    ),
    "decided twice": (
        "I14",
        lambda h, f: (
            plus(h, "decision", "g", n=60, who="laneway", decision="expired", payload=""), f
        ),
    ),
    "run before anyone agreed": ("I15", lambda h, f: (changed(h, "decision", n=46), f)),
    "run though it was rejected": (
        "I15",
        lambda h, f: (changed(h, "decision", decision="rejected"), f),
    ),
    "run without an approval": (
        "I15",
        lambda h, f: (changed(h, "claim", payload="something else"), f),
    ),
    "analyzed too often": (
        "I8",
        lambda h, f: (
            History([*h, *(
                HistoryEvent("claim", "g", i, n=60 + i, more={"analysis": True, "payload": ""})
                for i in (3, 4, 5))]),
            f,
        ),
    ),
}  # fmt: skip


def test_lawful_history_breaks_no_law() -> None:
    assert check(*lawful()) == []


@pytest.mark.parametrize("name", DOCTORED)
def test_falsified_history_is_detected(name: str) -> None:
    law, doctor = DOCTORED[name]
    assert law in {violation.law for violation in check(*doctor(*lawful()))}


def test_job_that_may_run_after_failure_only_waits_for_the_end() -> None:
    history, final = lawful()
    assert check(changed(history, "linked", parents=["b"], rule="run"), final) == []


def test_every_law_can_fail() -> None:
    blamed = {law for law, _ in DOCTORED.values()}
    assert blamed == {(law.__doc__ or "").partition(":")[0] for law in LAWS}


def test_reopened_job_may_run_and_end_again() -> None:
    history, final = lawful()
    history.add("reopened", "b", 0, n=20, by_operator=True)
    history.add("claim", "b", 1, n=21, at=9.0, worker="w2", lane="x", lease_until=11.0)
    history.add("end", "b", 1, n=22, at=9.5, worker="w2", lease_until=11.0)
    history.add("outcome", "b", 1, n=23, status="completed", claimed=True)
    history = without(history, "cancel")
    assert check(history, job(final, "b", status="completed", attempt=1)) == []


def test_refused_stale_write_is_counted_and_no_violation() -> None:
    stale = stale_writes(*lawful())
    assert [(event.attempt, event.more["verb"]) for event in stale.refused] == [(1, "finish")]
    assert stale.accepted == []


def test_accepted_stale_write_is_counted() -> None:
    history, final = lawful()
    assert stale_writes(changed(history, "progress", attempt=1), final).accepted


def test_runs_overlap_only_while_the_older_process_lives() -> None:
    history, _ = lawful()
    assert overlaps(history) == 0
    assert overlaps(without(history, "death")) == 1


def test_history_survives_save_and_truncated_line(tmp_path: Path) -> None:
    history, _ = lawful()
    path = tmp_path / "history.jsonl"
    history.save(path)
    with path.open("a") as file:
        file.write('{"what": "sta')
    assert History.load(path).events == history.events
