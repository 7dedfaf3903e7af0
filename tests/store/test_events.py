"""The log of changes: each change of what is watched once and in order, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from laneway.domain.approval import Analysis, Approval
from laneway.domain.event import Cursor, Event, Snapshot
from laneway.store import approvals, caller_transaction, events, jobs, leases
from laneway.store.leases import Report
from laneway.store.retention import LeaderTerm, prune_events
from tests.control.scene import Scene
from tests.store.desk import PATIENCE, Desk, error

KEEP = 900.0


@pytest.fixture
def other(desk: Desk) -> Iterator[Desk]:
    with Desk(desk.dsn) as other:
        yield other


def watch(desk: Desk, *seqs: int) -> None:
    """Watches, as a replica does that nobody disturbs."""
    unsettled = desk.run(events.open_watches(seqs, KEEP))
    assert desk.run(events.reconcile(seqs)) == set(seqs) or unsettled


def settle(desk: Desk, seq: int) -> None:
    """Reconciles until the watch is settled: other tests have transactions on the same server."""
    deadline = time.monotonic() + PATIENCE
    while desk.run(events.reconcile([seq])) != {seq}:
        assert time.monotonic() < deadline


def logged(desk: Desk, seq: int | None = None) -> list[str]:
    where = "true" if seq is None else f"seq = {seq}"
    return [
        row[0] for row in desk.rows(f"select name from laneway.events where {where} order by id")
    ]


def test_what_nobody_watches_is_not_logged(desk: Desk) -> None:
    watched, other = desk.submit(), desk.submit()
    watch(desk, watched)
    first, second = desk.claimed(2)
    desk.report([Report(first, done=1.0), Report(second, done=1.0)])
    desk.settle(first, "finish")
    desk.settle(second, "finish")
    assert logged(desk, other) == []
    assert logged(desk, watched) == [
        "job.state", "job.claimed", "job.progressed", "job.completed",
    ]  # fmt: skip


def test_each_verb_of_a_life_logs_one_change(desk: Desk) -> None:
    watch(desk, 0)
    scene = Scene(desk.conn)
    scene.publish("costly", approval=Approval(), has_analysis=True)
    job_id = scene.analyzed(Analysis(), created_by="me")
    seq = desk.seq_of(job_id)
    desk.run(jobs.reprioritize(job_id, 7))
    desk.run(approvals.approve(job_id, "you", None, None))
    for verdict in ("snooze", "release", "fail"):
        (claim,) = scene.claim("costly")
        scene.settle(claim, verdict, delay_s=0.0)
        desk.make_due()
    (claim,) = scene.claim("costly")
    for _ in range(2):
        desk.cancel(seq)
    scene.settle(claim, "fail", error=error())
    desk.retry(seq)
    (claim,) = scene.claim("costly")
    desk.begin()
    assert desk.run(caller_transaction.finish(claim, "1", 0.1)) == "finished"
    desk.commit()
    assert logged(desk, seq) == [
        "job.submitted", "job.claimed", "job.analyzed", "job.reprioritized", "job.approved",
        "job.claimed", "job.snoozed", "job.claimed", "job.released", "job.claimed", "job.returned",
        "job.claimed", "job.cancel_requested", "job.cancelled", "job.retried",
        "job.claimed", "job.completed",
    ]  # fmt: skip


def test_a_refused_write_logs_nothing(desk: Desk) -> None:
    claim = desk.running()
    watch(desk, claim.seq)
    stale = claim._replace(attempt=9)
    desk.report([Report(stale, done=1.0)])
    desk.settle(stale, "finish")
    assert logged(desk) == ["job.state"]


def test_an_event_holds_neither_payload_nor_traceback(desk: Desk) -> None:
    claim = desk.running(payload={"secret": 1})
    watch(desk, claim.seq)
    desk.settle(claim, "giveup", error='{"type": "E", "message": "m", "traceback": "t"}')
    state = desk.one("select state from laneway.events order by id desc limit 1")
    assert state["error"] == {"type": "E", "message": "m", "public": None}
    assert not {"payload", "result", "checkpoint", "analysis"} & state.keys()


def test_who_watches_all_gets_one_event_for_many_jobs_at_once(desk: Desk) -> None:
    watch(desk, 0)
    seqs = [desk.submit() for _ in range(60)]
    before = len(logged(desk))
    watch(desk, seqs[3])
    desk.claimed(60)
    names = logged(desk)[before:]
    assert sorted(names) == ["job.claimed", "job.state", "jobs.changed"]
    changed = desk.one(
        "select state from laneway.events where name = 'jobs.changed' order by id desc limit 1"
    )
    assert changed == {"change": "claimed", "count": 60}


# -- no gap at the start ------------------------------------------------------------------------


def test_an_end_that_looked_before_the_watch_is_logged(desk: Desk, other: Desk) -> None:
    claim = desk.running()
    other.begin()
    other.settle(claim, "finish")  # looked, and saw nobody who watches
    assert desk.run(events.open_watches([claim.seq], KEEP)) == {claim.seq}
    assert desk.run(events.reconcile([claim.seq])) == set(), "an older transaction runs"
    assert logged(desk) == ["job.state"]
    other.commit()
    assert logged(desk) == ["job.state"], "this is the gap"
    settle(desk, claim.seq)
    assert logged(desk) == ["job.state", "job.completed"]
    assert desk.run(events.reconcile([claim.seq])) == {claim.seq}
    assert logged(desk) == ["job.state", "job.completed"]


def test_who_logs_a_change_is_not_overtaken_by_a_look(desk: Desk, other: Desk) -> None:
    claim = desk.running()
    desk.run(events.open_watches([claim.seq], KEEP))
    other.begin()
    other.settle(claim, "finish")
    assert desk.run(events.reconcile([claim.seq])) == set()
    other.commit()
    settle(desk, claim.seq)
    assert logged(desk) == ["job.state", "job.completed"]


def test_a_job_and_its_newest_event_are_compared_as_of_one_moment(desk: Desk) -> None:
    """A volatile function would see a change whose event the statement that calls it does not."""
    kind = desk.one("select provolatile::text from pg_proc where oid = 'laneway.present'::regproc")
    assert kind == "s"


def test_watchers_of_all_are_told_what_may_have_been_missed(desk: Desk, other: Desk) -> None:
    other.begin()
    other.submit()
    desk.run(events.open_watches([0], KEEP))
    assert desk.run(events.reconcile([0])) == set()
    begun = logged(desk)
    other.commit()
    settle(desk, 0)
    assert logged(desk) == [*begun, "jobs.changed"]


def test_a_finish_in_an_old_snapshot_is_logged(desk: Desk, other: Desk) -> None:
    claim = desk.running()
    other.do("begin isolation level repeatable read")
    other.one("select 1 from laneway.control")
    watch(desk, claim.seq)
    assert other.run(caller_transaction.finish(claim, "1", 0.1)) == "finished"
    other.commit()
    assert logged(desk) == ["job.state", "job.completed"]


# -- reading ------------------------------------------------------------------------------------


def leader(desk: Desk) -> LeaderTerm:
    epoch = desk.run(leases.watch(desk.worker, 60.0)).epoch
    assert epoch is not None
    return LeaderTerm(desk.worker, epoch)


# Makes a transaction, so that there is a newer one.
OLDEST_UNDER_WAY = (
    "select pg_snapshot_xmin(pg_current_snapshot())::text::bigint from pg_current_xact_id()"
)


def prune_hours_later(desk: Desk, mandate: LeaderTerm) -> int:
    """Until something goes: a transaction of another test may be older than what is to go."""
    deadline = time.monotonic() + PATIENCE
    while True:
        desk.do("update laneway.event_log set new_at = new_at - interval '1 h'")
        if gone := desk.run(prune_events(mandate, KEEP)):
            return gone
        assert time.monotonic() < deadline


def ids(found: list[Event]) -> list[int]:
    return [event.id for event in found]


def test_an_event_that_becomes_visible_late_is_read_once(desk: Desk, other: Desk) -> None:
    late, soon = other.running(), desk.running()
    watch(desk, late.seq, soon.seq)
    start = desk.run(events.snapshot())
    other.begin()
    other.settle(late, "finish")
    desk.settle(soon, "finish")
    first = desk.run(events.between(start))
    assert [e.seq for e in first.events] == [soon.seq]
    other.commit()
    second = desk.run(events.between(first.next))
    assert [e.seq for e in second.events] == [late.seq]
    assert ids(second.events) < ids(first.events), "ids come out of order"
    assert desk.run(events.between(second.next)).events == []
    # Whoever resumes within the first look, or at its end, wherever: the same events.
    again = desk.run(events.between(start, first.next))
    assert ids(again.events) == ids(first.events)
    rest = desk.run(events.between(start, first.next, after=first.events[0].id))
    assert rest.events == []


def test_a_job_is_read_on_from_an_event_of_its_own(desk: Desk) -> None:
    claim = desk.running()
    watch(desk, claim.seq)
    fresh = desk.run(events.of_job(claim.seq, None))
    assert (fresh.is_known, [e.name for e in fresh.events]) == (False, ["job.state"])
    for done in (1.0, 2.0):
        desk.report([Report(claim, done=done)])
    after = desk.run(events.of_job(claim.seq, fresh.events[0].id))
    assert after.is_known
    assert [e.state["progress"]["done"] for e in after.events] == [1.0, 2.0]
    over = desk.run(events.of_job(claim.seq, after.newest))
    assert (over.is_known, over.events) == (True, [])
    unknown = desk.run(events.of_job(claim.seq, 10**15))
    assert (unknown.is_known, ids(unknown.events)) == (False, [after.newest])


def test_a_job_is_read_on_from_the_first_event_of_a_stream_though_all_were_watched_before(
    desk: Desk,
) -> None:
    watch(desk, 0)
    seq = desk.submit()
    watch(desk, seq)
    (first,) = desk.run(events.of_job(seq, None)).events
    assert first.name == "job.state"
    still = desk.run(events.of_job(seq, first.id))
    assert (still.is_known, still.events) == (True, [])
    desk.claimed(1)
    after = desk.run(events.of_job(seq, first.id))
    assert (after.is_known, [e.name for e in after.events]) == (True, ["job.claimed"])


def test_the_end_of_a_job_is_told_once_though_all_were_watched_before(desk: Desk) -> None:
    watch(desk, 0)
    claim = desk.running()
    desk.settle(claim, "finish")
    watch(desk, claim.seq)
    (last,) = desk.run(events.of_job(claim.seq, None)).events
    assert last.name == "job.completed"
    over = desk.run(events.of_job(claim.seq, last.id))
    assert (over.is_known, over.events) == (True, [])
    assert logged(desk, claim.seq).count("job.completed") == 1


def test_what_was_pruned_or_not_watched_cannot_be_resumed(desk: Desk) -> None:
    claim = desk.running()
    watch(desk, claim.seq, 0)
    since = desk.run(events.snapshot())
    (first,) = desk.run(events.of_job(claim.seq, None)).events
    assert desk.run(events.can_resume([claim.seq, 0], since))
    assert not desk.run(events.can_resume([claim.seq + 1], since)), "nobody watched that"
    ahead = Snapshot.of(since)
    far = Snapshot(ahead.xmin + 10**6, ahead.xmax + 10**6)
    assert not desk.run(events.can_resume([0], str(far))), "of another database"
    desk.report([Report(claim, done=1.0)])
    # What a transaction of another test, under way then, may have written is kept.
    deadline = time.monotonic() + PATIENCE
    while (seen := Snapshot.of(latest := desk.run(events.snapshot()))).xmin < seen.xmax:
        assert time.monotonic() < deadline
    while desk.one(OLDEST_UNDER_WAY) <= seen.xmax:
        assert time.monotonic() < deadline
    mandate = leader(desk)
    assert desk.run(prune_events(mandate, KEEP)) == 0
    assert prune_hours_later(desk, mandate) == len(["jobs.changed", "job.state", "job.progressed"])
    assert not desk.run(events.can_resume([claim.seq, 0], since))
    assert desk.run(events.can_resume([claim.seq, 0], latest)), "nothing came after"
    assert desk.run(events.snapshot()) == latest
    watch(desk, claim.seq)
    again = desk.run(events.of_job(claim.seq, first.id))
    assert (again.is_known, [e.name for e in again.events]) == (False, ["job.state"])
    desk.do("update laneway.watches set until = clock_timestamp()")
    assert desk.run(prune_events(mandate, KEEP)) == 2
    desk.run(events.open_watches([0], KEEP))
    desk.run(events.reconcile([0]))
    assert not desk.run(events.can_resume([0], since)), "another watch than then"


def test_the_log_is_kept_while_an_old_transaction_may_still_write_to_it(
    desk: Desk, other: Desk
) -> None:
    claim = desk.running()
    watch(desk, claim.seq)
    other.begin()
    other.settle(claim, "finish")
    mandate = leader(desk)
    desk.run(prune_events(mandate, KEEP))
    for _ in range(2):
        desk.do(
            "update laneway.event_log set new_at = new_at - interval '1 h',"
            " old_at = old_at - interval '1 h'"
        )
        desk.run(prune_events(mandate, KEEP))
    other.commit()
    desk.run(prune_events(mandate, KEEP))
    assert logged(desk)[-1:] == ["job.completed"]


def test_what_a_dump_brought_of_another_cluster_is_in_nobodys_way(desk: Desk) -> None:
    """Its transactions have numbers that are still to come."""
    claim = desk.running()
    watch(desk, claim.seq)
    (old,) = desk.run(events.of_job(claim.seq, None)).events
    desk.do("update laneway.events set xid = '1000000000000'")
    desk.do("update laneway.event_log set pruned_xid = '999999999999'")
    desk.do("update laneway.watches set born = '1000000000000', mark = '1000000000000'")
    since = desk.run(events.snapshot())
    desk.report([Report(claim, done=1.0)])
    assert [e.name for e in desk.run(events.between(since)).events] == ["job.progressed"]

    assert desk.run(prune_events(leader(desk), KEEP)) == 1
    assert logged(desk) == ["job.progressed"]
    assert desk.one("select pruned_xid::text, pruned_id from laneway.event_log") == ("0", old.id)
    for done in (2.0, 3.0):
        since = desk.run(events.snapshot())
        desk.report([Report(claim, done=done)])
        assert [e.name for e in desk.run(events.between(since)).events] == ["job.progressed"]
    assert desk.run(events.can_resume([claim.seq], since))
    settle(desk, claim.seq)


@pytest.mark.parametrize("text", ["10:10:", "10:20:11,13,19", "7:9:7"])
def test_a_cursor_is_read_as_it_was_written(text: str) -> None:
    snapshot: Any = Snapshot.of(text)
    assert str(snapshot) == text
    cursor = Cursor(snapshot, Snapshot(30, 31), 12)
    assert Cursor.read(str(cursor)) == cursor


# -- cost ---------------------------------------------------------------------------------------


def rows_read(desk: Desk) -> int:
    """By the statements of this connection so far, whatever their plan."""
    return int(
        desk.one(
            "select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)"
            " from pg_stat_xact_user_tables where schemaname = 'laneway'"
        )
    )


@pytest.mark.parametrize("known", ["", "analyze laneway.events", "analyze"])
def test_neither_logging_nor_reading_walks_over_what_is_there(desk: Desk, known: str) -> None:
    """However many jobs have ended and events are kept, whatever the statistics know of it."""
    many = 20_000
    desk.do(
        "insert into laneway.jobs (id, job_type, payload)"
        f" select gen_random_uuid(), 'old', '{{}}' from generate_series(1, {many})"
    )
    desk.do(
        "insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries)"
        " select seq, 'completed', 'default', 'old', 0, 1, 0 from laneway.jobs"
    )
    desk.do(
        "insert into laneway.events (seq, name, state)"
        " select seq, 'job.completed', '{}' from laneway.jobs"
    )
    if known:
        desk.do(known)
    claims = [desk.running() for _ in range(5)]
    watch(desk, 0, claims[0].seq)
    desk.begin()
    start, before = desk.run(events.snapshot()), rows_read(desk)
    for claim in claims:
        desk.settle(claim, "finish")
    assert rows_read(desk) - before < 1000
    desk.commit()
    desk.begin()
    before = rows_read(desk)
    found = desk.run(events.between(start)).events
    assert len(found) == 5
    assert desk.run(events.of_job(claims[0].seq, None)).events
    assert len(desk.run(events.jobs([claim.seq for claim in claims]))) == 5
    desk.run(events.open_watches([claims[1].seq], KEEP))
    desk.run(events.reconcile([claims[1].seq]))
    assert rows_read(desk) - before < 1000
    desk.commit()


def test_the_end_of_a_log_that_was_pruned_is_found_though_an_old_snapshot_keeps_it(
    desk: Desk, other: Desk
) -> None:
    """Nothing came after it, so all of it is dead entries at the end of the index."""
    desk.do(
        "insert into laneway.events (name, state)"
        " select 'jobs.changed', '{}' from generate_series(1, 20000)"
    )
    other.do("begin isolation level repeatable read")
    other.one("select count(*) from laneway.events")
    mandate = leader(desk)
    while prune_hours_later(desk, mandate):
        if not desk.one("select count(*) from laneway.events"):
            break
    for _ in range(2):  # the first reads the catalog too
        (plan,) = desk.one("explain (analyze, buffers, format json) select laneway.seen_log()")
    assert plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] < 100
    other.commit()


def test_a_watch_of_a_job_that_is_new_to_the_log_reads_none_of_it(desk: Desk) -> None:
    """Where a few busy jobs have written it full, and the statistics know."""
    desk.do(
        "insert into laneway.events (seq, name, state)"
        " select 1000000 + mod(g, 5), 'job.progressed', '{}' from generate_series(1, 50000) g"
    )
    desk.do("vacuum analyze laneway.events")
    claim = desk.running()
    desk.begin()
    before = rows_read(desk)
    desk.run(events.open_watches([claim.seq], KEEP))
    desk.run(events.reconcile([claim.seq]))
    (first,) = desk.run(events.of_job(claim.seq, None)).events
    desk.run(events.of_job(claim.seq, first.id))
    assert rows_read(desk) - before < 1000
    desk.commit()
