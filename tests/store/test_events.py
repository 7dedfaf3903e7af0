"""The event log: each change of watched jobs once and in order, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from laneway.domain.approval import Analysis, Approval
from laneway.domain.event import Cursor, Event, Snapshot
from laneway.store import approvals, caller_transaction, events, handler_waits, jobs, leases
from laneway.store.handler_waits import NewWait
from laneway.store.leases import Report
from laneway.store.retention import LeaderTerm, prune_events
from tests.support.job_factory import JobFactory
from tests.support.store_client import PATIENCE, StoreClient, error

KEEP = 900.0


@pytest.fixture
def other(db: StoreClient) -> Iterator[StoreClient]:
    with StoreClient(db.dsn) as other:
        yield other


def watch(db: StoreClient, *seqs: int) -> None:
    """Watch like an undisturbed replica."""
    unsettled = db.run(events.open_watches(seqs, KEEP))
    assert db.run(events.reconcile(seqs)) == set(seqs) or unsettled


def settle(db: StoreClient, seq: int) -> None:
    """Reconcile until the watch is settled: other tests have transactions on the same server."""
    deadline = time.monotonic() + PATIENCE
    while db.run(events.reconcile([seq])) != {seq}:
        assert time.monotonic() < deadline


def logged(db: StoreClient, seq: int | None = None) -> list[str]:
    where = "true" if seq is None else f"seq = {seq}"
    return [row[0] for row in db.rows(f"select name from laneway.events where {where} order by id")]


def test_unwatched_jobs_are_not_logged(db: StoreClient) -> None:
    watched, other = db.submit(), db.submit()
    watch(db, watched)
    first, second = db.claimed(2)
    db.report([Report(first, done=1.0), Report(second, done=1.0)])
    db.settle(first, "finish")
    db.settle(second, "finish")
    assert logged(db, other) == []
    assert logged(db, watched) == [
        "job.state", "job.claimed", "job.progressed", "job.completed",
    ]  # fmt: skip


def test_each_verb_of_a_life_logs_one_change(db: StoreClient) -> None:
    watch(db, 0)
    factory = JobFactory(db.conn)
    factory.publish("costly", approval=Approval(), has_analysis=True)
    job_id = factory.analyzed(Analysis(), created_by="me")
    seq = db.seq_of(job_id)
    db.run(jobs.reprioritize(job_id, 7))
    db.run(approvals.approve(job_id, "you", None, None))
    (claim,) = factory.claim("costly")
    factory.settle(claim, "snooze", delay_s=3600.0)
    db.run(jobs.run_now(job_id))
    for verdict in ("snooze", "release", "fail"):
        (claim,) = factory.claim("costly")
        factory.settle(claim, verdict, delay_s=0.0)
        db.make_due()
    (claim,) = factory.claim("costly")
    for _ in range(2):
        db.cancel(seq)
    factory.settle(claim, "fail", error=error())
    db.retry(seq)
    (claim,) = factory.claim("costly")
    db.begin()
    assert db.run(caller_transaction.finish(claim, "1", 0.1)) == "finished"
    db.commit()
    assert logged(db, seq) == [
        "job.submitted", "job.claimed", "job.analyzed", "job.reprioritized", "job.approved",
        "job.claimed", "job.snoozed", "job.made_due",
        "job.claimed", "job.snoozed", "job.claimed", "job.released", "job.claimed", "job.returned",
        "job.claimed", "job.cancel_requested", "job.cancelled", "job.retried",
        "job.claimed", "job.completed",
    ]  # fmt: skip


def test_wait_of_a_handler_and_its_end_are_logged(db: StoreClient) -> None:
    watch(db, 0)
    claim = db.running()
    assert db.run(handler_waits.begin(claim, NewWait("nap", "sleep", 3600.0))).state == "open"
    db.settle(claim, "wait", result="nap")
    state = db.one("select state from laneway.events order by id desc limit 1")
    assert (state["status"], state["waits_for"]["name"]) == ("waiting", "nap")
    db.run(jobs.run_now(claim.job_id))
    (claim,) = db.claimed(1)
    # A wait that ends before its attempt does.
    assert db.run(handler_waits.begin(claim, NewWait("second", "sleep", 0.0))).state == "done"
    db.settle(claim, "wait", result="second")
    child = db.one("select job_id from laneway.submit('t', after => %s)", [claim.job_id])
    (claim,) = db.claimed(1)
    db.settle(claim, "finish")
    assert logged(db, claim.seq) == [
        "job.submitted", "job.claimed", "job.waited", "job.released",
        "job.claimed", "job.waited", "job.claimed", "job.completed",
    ]  # fmt: skip
    assert logged(db, db.seq_of(child)) == ["job.submitted", "job.released"]


def test_refused_write_logs_nothing(db: StoreClient) -> None:
    claim = db.running()
    watch(db, claim.seq)
    stale = claim._replace(attempt=9)
    db.report([Report(stale, done=1.0)])
    db.settle(stale, "finish")
    assert logged(db) == ["job.state"]


def test_event_holds_neither_payload_nor_traceback(db: StoreClient) -> None:
    claim = db.running(payload={"secret": 1})
    watch(db, claim.seq)
    db.settle(claim, "giveup", error='{"type": "E", "message": "m", "traceback": "t"}')
    state = db.one("select state from laneway.events order by id desc limit 1")
    assert state["error"] == {"type": "E", "message": "m", "public": None}
    assert not {"payload", "result", "checkpoint", "analysis"} & state.keys()


def test_watcher_of_all_gets_one_event_for_many_jobs(db: StoreClient) -> None:
    watch(db, 0)
    seqs = [db.submit() for _ in range(60)]
    before = len(logged(db))
    watch(db, seqs[3])
    db.claimed(60)
    names = logged(db)[before:]
    assert sorted(names) == ["job.claimed", "job.state", "jobs.changed"]
    changed = db.one(
        "select state from laneway.events where name = 'jobs.changed' order by id desc limit 1"
    )
    assert changed == {"change": "claimed", "count": 60}


# -- no gap at the start ------------------------------------------------------------------------


def test_end_that_looked_before_the_watch_is_logged(db: StoreClient, other: StoreClient) -> None:
    claim = db.running()
    other.begin()
    other.settle(claim, "finish")  # checked before the watch existed
    assert db.run(events.open_watches([claim.seq], KEEP)) == {claim.seq}
    assert db.run(events.reconcile([claim.seq])) == set(), "an older transaction runs"
    assert logged(db) == ["job.state"]
    other.commit()
    assert logged(db) == ["job.state"], "this is the gap"
    settle(db, claim.seq)
    assert logged(db) == ["job.state", "job.completed"]
    assert db.run(events.reconcile([claim.seq])) == {claim.seq}
    assert logged(db) == ["job.state", "job.completed"]


def test_reader_does_not_overtake_open_logging_transaction(
    db: StoreClient, other: StoreClient
) -> None:
    claim = db.running()
    db.run(events.open_watches([claim.seq], KEEP))
    other.begin()
    other.settle(claim, "finish")
    assert db.run(events.reconcile([claim.seq])) == set()
    other.commit()
    settle(db, claim.seq)
    assert logged(db) == ["job.state", "job.completed"]


def test_job_and_its_newest_event_are_compared_as_of_one_moment(db: StoreClient) -> None:
    """A volatile function would see a change whose event the statement that calls it does not."""
    kind = db.one(
        "select provolatile::text from pg_proc where oid = 'laneway.current_state'::regproc"
    )
    assert kind == "s"


def test_watchers_of_all_are_notified_of_possible_gaps(db: StoreClient, other: StoreClient) -> None:
    other.begin()
    other.submit()
    db.run(events.open_watches([0], KEEP))
    assert db.run(events.reconcile([0])) == set()
    begun = logged(db)
    other.commit()
    settle(db, 0)
    assert logged(db) == [*begun, "jobs.changed"]


def test_finish_in_an_old_snapshot_is_logged(db: StoreClient, other: StoreClient) -> None:
    claim = db.running()
    other.do("begin isolation level repeatable read")
    other.one("select 1 from laneway.control")
    watch(db, claim.seq)
    assert other.run(caller_transaction.finish(claim, "1", 0.1)) == "finished"
    other.commit()
    assert logged(db) == ["job.state", "job.completed"]


# -- reading ------------------------------------------------------------------------------------


def leader(db: StoreClient) -> LeaderTerm:
    epoch = db.run(leases.run_watchdog(db.worker, 60.0)).epoch
    assert epoch is not None
    return LeaderTerm(db.worker, epoch)


# A newer transaction.
OLDEST_UNDER_WAY = (
    "select pg_snapshot_xmin(pg_current_snapshot())::text::bigint from pg_current_xact_id()"
)


def prune_hours_later(db: StoreClient, term: LeaderTerm) -> int:
    """Prune until rows are deleted: a transaction of another test may be older."""
    deadline = time.monotonic() + PATIENCE
    while True:
        db.do("update laneway.event_log set new_at = new_at - interval '1 h'")
        if gone := db.run(prune_events(term, KEEP)):
            return gone
        assert time.monotonic() < deadline


def ids(found: list[Event]) -> list[int]:
    return [event.id for event in found]


def test_event_that_becomes_visible_late_is_read_once(db: StoreClient, other: StoreClient) -> None:
    late, soon = other.running(), db.running()
    watch(db, late.seq, soon.seq)
    start = db.run(events.position())[0]
    other.begin()
    other.settle(late, "finish")
    db.settle(soon, "finish")
    first = db.run(events.between(start))
    assert [e.seq for e in first.events] == [soon.seq]
    other.commit()
    second = db.run(events.between(first.next))
    assert [e.seq for e in second.events] == [late.seq]
    assert ids(second.events) < ids(first.events), "ids come out of order"
    assert db.run(events.between(second.next)).events == []
    # Resuming within the first read, or at its end, returns the same events.
    again = db.run(events.between(start, first.next))
    assert ids(again.events) == ids(first.events)
    rest = db.run(events.between(start, first.next, after=first.events[0].id))
    assert rest.events == []


def test_job_is_read_on_from_an_event_of_its_own(db: StoreClient) -> None:
    claim = db.running()
    watch(db, claim.seq)
    fresh = db.run(events.of_job(claim.seq, None))
    assert (fresh.is_known, [e.name for e in fresh.events]) == (False, ["job.state"])
    for done in (1.0, 2.0):
        db.report([Report(claim, done=done)])
    after = db.run(events.of_job(claim.seq, fresh.events[0].id))
    assert after.is_known
    assert [e.state["progress"]["done"] for e in after.events] == [1.0, 2.0]
    over = db.run(events.of_job(claim.seq, after.newest))
    assert (over.is_known, over.events) == (True, [])
    unknown = db.run(events.of_job(claim.seq, 10**15))
    assert (unknown.is_known, ids(unknown.events)) == (False, [after.newest])


def test_job_stream_continues_from_its_first_event(
    db: StoreClient,
) -> None:
    watch(db, 0)
    seq = db.submit()
    watch(db, seq)
    (first,) = db.run(events.of_job(seq, None)).events
    assert first.name == "job.state"
    still = db.run(events.of_job(seq, first.id))
    assert (still.is_known, still.events) == (True, [])
    db.claimed(1)
    after = db.run(events.of_job(seq, first.id))
    assert (after.is_known, [e.name for e in after.events]) == (True, ["job.claimed"])


def test_end_of_job_is_logged_once_with_watchers_of_all(db: StoreClient) -> None:
    watch(db, 0)
    claim = db.running()
    db.settle(claim, "finish")
    watch(db, claim.seq)
    (last,) = db.run(events.of_job(claim.seq, None)).events
    assert last.name == "job.completed"
    over = db.run(events.of_job(claim.seq, last.id))
    assert (over.is_known, over.events) == (True, [])
    assert logged(db, claim.seq).count("job.completed") == 1


def test_pruned_or_unwatched_stream_cannot_be_resumed(db: StoreClient) -> None:
    claim = db.running()
    watch(db, claim.seq, 0)
    since = db.run(events.position())[0]
    (first,) = db.run(events.of_job(claim.seq, None)).events
    assert db.run(events.can_resume([claim.seq, 0], since))
    assert not db.run(events.can_resume([claim.seq + 1], since)), "that job was not watched"
    ahead = Snapshot.of(since)
    far = Snapshot(ahead.xmin + 10**6, ahead.xmax + 10**6)
    assert not db.run(events.can_resume([0], str(far))), "of another database"
    db.report([Report(claim, done=1.0)])
    # Rows that a concurrent transaction of another test may have written are kept.
    deadline = time.monotonic() + PATIENCE
    while (seen := Snapshot.of(latest := db.run(events.position())[0])).xmin < seen.xmax:
        assert time.monotonic() < deadline
    while db.one(OLDEST_UNDER_WAY) <= seen.xmax:
        assert time.monotonic() < deadline
    term = leader(db)
    assert db.run(prune_events(term, KEEP)) == 0
    assert prune_hours_later(db, term) == len(["jobs.changed", "job.state", "job.progressed"])
    assert not db.run(events.can_resume([claim.seq, 0], since))
    assert db.run(events.can_resume([claim.seq, 0], latest)), "nothing came after"
    assert db.run(events.position())[0] == latest
    watch(db, claim.seq)
    again = db.run(events.of_job(claim.seq, first.id))
    assert (again.is_known, [e.name for e in again.events]) == (False, ["job.state"])
    db.do("update laneway.watches set until = clock_timestamp()")
    assert db.run(prune_events(term, KEEP)) == 2
    db.run(events.open_watches([0], KEEP))
    db.run(events.reconcile([0]))
    assert not db.run(events.can_resume([0], since)), "another watch than then"


def test_log_is_kept_while_an_old_transaction_may_still_write_to_it(
    db: StoreClient, other: StoreClient
) -> None:
    claim = db.running()
    watch(db, claim.seq)
    other.begin()
    other.settle(claim, "finish")
    term = leader(db)
    db.run(prune_events(term, KEEP))
    for _ in range(2):
        db.do(
            "update laneway.event_log set new_at = new_at - interval '1 h',"
            " old_at = old_at - interval '1 h'"
        )
        db.run(prune_events(term, KEEP))
    other.commit()
    db.run(prune_events(term, KEEP))
    assert logged(db)[-1:] == ["job.completed"]


def test_transaction_ids_of_other_cluster_in_dump_are_harmless(db: StoreClient) -> None:
    """Its transactions have ids that this cluster has not reached."""
    claim = db.running()
    watch(db, claim.seq)
    (old,) = db.run(events.of_job(claim.seq, None)).events
    db.do("update laneway.events set xid = '1000000000000'")
    db.do("update laneway.event_log set pruned_xid = '999999999999'")
    db.do("update laneway.watches set born = '1000000000000', mark = '1000000000000'")
    since = db.run(events.position())[0]
    db.report([Report(claim, done=1.0)])
    assert [e.name for e in db.run(events.between(since)).events] == ["job.progressed"]

    assert db.run(prune_events(leader(db), KEEP)) == 1
    assert logged(db) == ["job.progressed"]
    assert db.one("select pruned_xid::text, pruned_id from laneway.event_log") == ("0", old.id)
    for done in (2.0, 3.0):
        since = db.run(events.position())[0]
        db.report([Report(claim, done=done)])
        assert [e.name for e in db.run(events.between(since)).events] == ["job.progressed"]
    assert db.run(events.can_resume([claim.seq], since))
    settle(db, claim.seq)


@pytest.mark.parametrize("text", ["10:10:", "10:20:11,13,19", "7:9:7"])
def test_cursor_is_read_as_it_was_written(text: str) -> None:
    snapshot: Any = Snapshot.of(text)
    assert str(snapshot) == text
    cursor = Cursor(snapshot, Snapshot(30, 31), 12)
    assert Cursor.read(str(cursor)) == cursor


# -- cost ---------------------------------------------------------------------------------------


def rows_read(db: StoreClient) -> int:
    """Rows read by the statements of this connection so far, with any plan."""
    return int(
        db.one(
            "select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)"
            " from pg_stat_xact_user_tables where schemaname = 'laneway'"
        )
    )


@pytest.mark.parametrize("known", ["", "analyze laneway.events", "analyze"])
def test_logging_and_reading_scan_no_existing_rows(db: StoreClient, known: str) -> None:
    """With any number of ended jobs and stored events, and any statistics."""
    many = 20_000
    db.do(
        "insert into laneway.jobs (id, job_type, payload)"
        f" select gen_random_uuid(), 'old', '{{}}' from generate_series(1, {many})"
    )
    db.do(
        "insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries)"
        " select seq, 'completed', 'default', 'old', 0, 1, 0 from laneway.jobs"
    )
    db.do(
        "insert into laneway.events (seq, name, state)"
        " select seq, 'job.completed', '{}' from laneway.jobs"
    )
    if known:
        db.do(known)
    claims = [db.running() for _ in range(5)]
    watch(db, 0, claims[0].seq)
    db.begin()
    start, before = db.run(events.position())[0], rows_read(db)
    for claim in claims:
        db.settle(claim, "finish")
    assert rows_read(db) - before < 1000
    db.commit()
    db.begin()
    before = rows_read(db)
    found = db.run(events.between(start)).events
    assert len(found) == 5
    assert db.run(events.of_job(claims[0].seq, None)).events
    assert len(db.run(events.jobs([claim.seq for claim in claims]))) == 5
    db.run(events.open_watches([claims[1].seq], KEEP))
    db.run(events.reconcile([claims[1].seq]))
    assert rows_read(db) - before < 1000
    db.commit()


def test_end_of_pruned_log_is_found_despite_old_snapshot(
    db: StoreClient, other: StoreClient
) -> None:
    """Nothing came after it, so all of it is dead entries at the end of the index."""
    db.do(
        "insert into laneway.events (name, state)"
        " select 'jobs.changed', '{}' from generate_series(1, 20000)"
    )
    other.do("begin isolation level repeatable read")
    other.one("select count(*) from laneway.events")
    term = leader(db)
    while prune_hours_later(db, term):
        if not db.one("select count(*) from laneway.events"):
            break
    for _ in range(2):  # the first reads the catalog too
        (plan,) = db.one("explain (analyze, buffers, format json) select laneway.log_snapshot()")
    assert plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] < 100
    other.commit()


def test_watch_of_a_job_that_is_new_to_the_log_reads_none_of_it(db: StoreClient) -> None:
    """A log filled by a few busy jobs, with statistics that show it."""
    db.do(
        "insert into laneway.events (seq, name, state)"
        " select 1000000 + mod(g, 5), 'job.progressed', '{}' from generate_series(1, 50000) g"
    )
    db.do("vacuum analyze laneway.events")
    claim = db.running()
    db.begin()
    before = rows_read(db)
    db.run(events.open_watches([claim.seq], KEEP))
    db.run(events.reconcile([claim.seq]))
    (first,) = db.run(events.of_job(claim.seq, None)).events
    db.run(events.of_job(claim.seq, first.id))
    assert rows_read(db) - before < 1000
    db.commit()
