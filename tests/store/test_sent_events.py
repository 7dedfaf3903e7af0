"""Events: kept for their retention, delivered once to each job, and never missed by a wait."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import psycopg
import pytest

from laneway.domain.bounds import Bounds
from laneway.domain.claim import Claim
from laneway.errors import InvalidInput, QuotaExceeded
from laneway.store import handler_waits, quotas, sent_events
from laneway.store.handler_waits import NewWait, WaitWrite
from laneway.store.lanes import peek
from laneway.store.quotas import Quota, event_account
from laneway.store.sent_events import NewEvent, SentEvent
from tests.support.store_client import StoreClient

Another = Callable[[], StoreClient]


def send(
    db: StoreClient, payload: str = "1", key: str = "k", workspace: str = "default"
) -> SentEvent:
    return db.run(sent_events.send("go", key, payload, workspace=workspace))


def ask(
    db: StoreClient, claim: Claim, name: str = "go", *, key: str = "k", seconds: float | None = None
) -> WaitWrite:
    return db.run(handler_waits.begin(claim, NewWait(name, "event", seconds, "go", key)))


def suspended(db: StoreClient, *, key: str = "k", workspace: str = "default") -> Claim:
    claim = db.running(workspace=workspace)
    assert ask(db, claim, key=key).state == "open"
    db.settle(claim, "wait", result="go")
    look(db)
    assert db.places(claim.seq) == ["waiting"]
    return claim


def look(db: StoreClient) -> list[str] | None:
    """A poll of some worker."""
    return db.run(peek([])).promoted


def test_event_releases_the_jobs_that_wait_for_it(db: StoreClient) -> None:
    first, second = suspended(db), suspended(db)
    others = [suspended(db, key="x"), suspended(db, workspace="acme")]
    sent = send(db, '{"a": 1}')
    assert (sent.delivered, sent.job_types) == (2, ["t"])
    assert [db.places(one.seq) for one in (first, second)] == [["ready"], ["ready"]]
    assert [db.places(one.seq) for one in others] == [["waiting"], ["waiting"]]
    for claim in db.claimed(2):
        assert ask(db, claim) == ("kept", "done", '{"a": 1}')


def test_event_is_kept_for_later_waits_and_taken_once(db: StoreClient) -> None:
    send(db, "1")
    send(db, "2")
    claim = db.running()
    assert ask(db, claim, "first").result == "1"
    assert ask(db, claim, "second").result == "2"
    assert ask(db, claim, "third").state == "open"
    assert ask(db, claim, "first").result == "1"
    other = db.running()
    assert ask(db, other, "first").result == "1"


def test_event_committed_late_is_still_taken(db: StoreClient, another: Another) -> None:
    """The number of an event tells nothing about when it becomes visible."""
    other = another()
    claim = db.running()
    with other.conn.transaction():
        send(other, "1")
        send(db, "2")
        assert ask(db, claim, "first").result == "2"
    assert ask(db, claim, "second").result == "1"


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_wait_during_an_open_send_gets_its_event(
    db: StoreClient, another: Another, isolation: str
) -> None:
    claim, other = db.running(), another()
    ask(db, claim)
    with other.conn.transaction():
        other.do(f"set transaction isolation level {isolation}")
        send(other, "1")
        db.settle(claim, "wait", result="go")
        look(db)
        assert db.places(claim.seq) == ["waiting"]
    look(db)
    assert db.places(claim.seq) == ["ready"]


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_send_during_an_open_wait_is_delivered(
    db: StoreClient, another: Another, isolation: str
) -> None:
    claim, other = db.running(), another()
    ask(db, claim)
    with other.conn.transaction():
        other.settle(claim, "wait", result="go")
        with db.conn.transaction():
            db.do(f"set transaction isolation level {isolation}")
            assert send(db).delivered == 0
        look(db)
    look(db)
    assert db.places(claim.seq) == ["ready"]


def test_event_of_old_snapshot_reaches_later_waiter(db: StoreClient, another: Another) -> None:
    """A sender in repeatable read does not see jobs that began to wait after its snapshot."""
    claim, other = db.running(), another()
    ask(db, claim)
    with other.conn.transaction():
        other.do("set transaction isolation level repeatable read")
        other.one("select count(*) from laneway.jobs")
        db.settle(claim, "wait", result="go")
        look(db)
        assert send(other).delivered == 0
    look(db)
    assert db.places(claim.seq) == ["ready"]


def test_rolled_back_event_releases_nobody(db: StoreClient, another: Another) -> None:
    claim, other = suspended(db), another()
    with other.conn.transaction(force_rollback=True):
        assert send(other).delivered == 1
    look(db)
    assert db.places(claim.seq) == ["waiting"]
    assert db.one("select done_at from laneway.handler_waits") is None


def test_waiter_locked_by_another_transaction_gets_its_event_later(
    db: StoreClient, another: Another
) -> None:
    claim, other = suspended(db), another()
    with other.conn.transaction():
        other.do("select from laneway.waiting where seq = %s for update", claim.seq)
        assert send(db).delivered == 0
        look(db)
    look(db)
    assert db.places(claim.seq) == ["ready"]


def test_timeout_is_decided_once(db: StoreClient) -> None:
    claim = db.running()
    ask(db, claim, seconds=3600.0)
    db.settle(claim, "wait", result="go")
    db.do("update laneway.waiting set wake_at = clock_timestamp() - interval '1 s'")
    look(db)
    assert db.places(claim.seq) == ["ready"]
    assert send(db).delivered == 0
    (again,) = db.claimed(1)
    assert ask(db, again).state == "timed_out"
    assert ask(db, again, "next").result == "1"


def test_expired_event_is_neither_taken_nor_kept(db: StoreClient) -> None:
    send(db)
    db.do("update laneway.sent_events set expires_at = clock_timestamp() - interval '1 s'")
    assert ask(db, db.running()).state == "open"
    assert db.one("select laneway.delete_expired_events(10)") == 1
    assert db.one("select count(*) from laneway.sent_events") == 0


def test_broadcast_reaches_more_jobs_than_one_call_handles(db: StoreClient) -> None:
    claims = [db.running() for _ in range(25)]
    for claim in claims:
        ask(db, claim)
        db.settle(claim, "wait", result="go")
    db.do("delete from laneway.event_checks")
    send(db)
    # As if none had been delivered with the event.
    db.do("select laneway.check_events(10)")
    while db.one("select count(*) from laneway.event_checks"):
        db.do("select laneway.check_events(10)")
    assert db.one("select count(*) from laneway.ready") == 25


def test_jobs_that_wait_for_the_next_event_do_not_hide_others(db: StoreClient) -> None:
    """A look handles a bounded number of jobs, and those that took the event wait again."""
    send(db, "1")
    for _ in range(12):
        claim = db.running()
        assert ask(db, claim, "first").state == "done"
        assert ask(db, claim, "second").state == "open"
        db.settle(claim, "wait", result="second")
    late = db.running()
    db.do("update laneway.sent_events set expires_at = clock_timestamp()")
    assert ask(db, late).state == "open"
    db.do("update laneway.sent_events set expires_at = clock_timestamp() + interval '1 hour'")
    db.settle(late, "wait", result="go")
    db.do("delete from laneway.event_checks")
    db.do("insert into laneway.event_checks (event_id) select id from laneway.sent_events")
    db.do("select laneway.check_events(10)")
    assert db.places(late.seq) == ["ready"]
    assert db.one("select count(*) from laneway.event_checks") == 0


def test_expired_event_is_not_looked_for_again(db: StoreClient) -> None:
    send(db)
    db.do("update laneway.sent_events set expires_at = clock_timestamp() - interval '1 s'")
    for _ in range(12):
        suspended(db)
    db.do("insert into laneway.event_checks (event_id) select id from laneway.sent_events")
    db.do("select laneway.check_events(10)")
    assert db.one("select count(*) from laneway.event_checks") == 0


def test_event_for_jobs_of_many_types_wakes_workers(db: StoreClient) -> None:
    """A notification holds 8,000 bytes."""
    for n in range(90):
        claim = db.running(f"{n:0100}")
        assert ask(db, claim).state == "open"
        db.settle(claim, "wait", result="go")
    sent = db.run(sent_events.send("go", "k", "1", workspace="default", wake=True))
    assert sent.delivered == 90


@pytest.mark.parametrize(
    "name, key, problem", [("", "k", "name: 1 to 200 bytes"), ("n", "k" * 513, "key")]
)
def test_bad_event_is_refused(db: StoreClient, name: str, key: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        db.run(sent_events.send(name, key, "1", workspace="default"))


def new(key: str, payload: str = "null", name: str = "go", retention_s: float = 60.0) -> NewEvent:
    return NewEvent(name, key, payload, "default", "ada", retention_s)


def test_events_sent_together_are_delivered_in_order(db: StoreClient) -> None:
    claims = {key: suspended(db, key=key) for key in ("a", "b", "b", "x")}
    waiting = sum(db.places(claim.seq) == ["waiting"] for claim in claims.values())
    assert waiting == 3
    sent = db.run(sent_events.send_all([new("b", '"1"'), new("a"), new("b", '"2"'), new("z")]))
    assert [one.delivered for one in sent] == [2, 1, 0, 0]
    assert [one.job_types for one in sent] == [["t"], ["t"], None, None]
    assert [one.id for one in sent] == sorted(one.id for one in sent)
    kept = "select key, payload::text, sent_by, expires_at - sent_at from laneway.sent_events"
    minute = timedelta(minutes=1)
    assert db.rows(kept + " order by id") == [
        ("b", '"1"', "ada", minute),
        ("a", "null", "ada", minute),
        ("b", '"2"', "ada", minute),
        ("z", "null", "ada", minute),
    ]
    assert db.places(claims["x"].seq) == ["waiting"]


def test_events_sent_together_are_stored_all_or_none(db: StoreClient) -> None:
    claim = suspended(db, key="a")
    with pytest.raises(InvalidInput, match="retention: 1 second to a year"):
        db.run(sent_events.send_all([new("a"), new("b", retention_s=0.5)]))
    assert db.one("select count(*) from laneway.sent_events") == 0
    assert db.places(claim.seq) == ["waiting"]


def test_event_outside_of_the_callers_workspaces_is_refused(db: StoreClient) -> None:
    db.do("set laneway.workspaces = '{acme}'")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        db.do("select laneway.send_event('go')")
    db.do("select laneway.send_event('go', workspace => 'acme')")


def test_checks_are_consumed(db: StoreClient) -> None:
    claim = suspended(db)
    send(db)
    look(db)
    assert db.one("select count(*) from laneway.event_checks") == 0
    assert db.places(claim.seq) == ["ready"]


def test_cancelled_job_waits_again_after_its_retry(db: StoreClient) -> None:
    claim = suspended(db)
    db.cancel(claim.seq)
    assert send(db).delivered == 0
    db.do("delete from laneway.sent_events")
    db.retry(claim.seq)
    (again,) = db.claimed(1)
    assert ask(db, again).state == "open"
    db.settle(again, "wait", result="go")
    assert send(db, "2").delivered == 1
    (again,) = db.claimed(1)
    assert ask(db, again).result == "2"


def counted(db: StoreClient, account: UUID, *, bound: int = 2, size: int = 100) -> SentEvent:
    """Sends an event of two bytes that counts against a quota."""
    quota = Quota(account, Bounds(max_queued=bound, max_queued_bytes=size))
    return db.run(
        sent_events.send_counted(
            quota, "go", "k", "11", workspace="default", sent_by="ann", retention_s=60.0
        )
    )


def test_kept_events_of_a_principal_are_bounded(db: StoreClient) -> None:
    account, other = event_account(uuid4()), event_account(uuid4())
    for _ in range(2):
        counted(db, account)
    with pytest.raises(QuotaExceeded, match=r"2 kept events \(max_queued\)") as full:
        counted(db, account)
    assert (full.value.bound, full.value.limit) == ("max_queued", 2)
    with pytest.raises(QuotaExceeded, match=r"5 bytes of kept events .*max_queued_bytes") as large:
        counted(db, account, bound=9, size=5)
    assert (large.value.bound, large.value.limit) == ("max_queued_bytes", 5)
    counted(db, other)
    assert db.one("select count(*) from laneway.sent_events") == 3
    kept = "select jobs::int, bytes::int from laneway.queued_of(%s)"
    assert (db.one(kept, account), db.one(kept, other)) == ((2, 4), (1, 2))


def test_event_counts_until_its_retention_is_over(db: StoreClient) -> None:
    account = event_account(uuid4())
    claim = suspended(db)
    first = counted(db, account)
    assert (first.delivered, counted(db, account).delivered) == (1, 0)
    (again,) = db.claimed(1)
    db.settle(again, "finish", result="1")
    assert db.run(quotas.sweep(account)) == 0
    db.do("update laneway.queue_usage set swept_at = '2020-01-01'")
    db.do("update laneway.sent_events set expires_at = clock_timestamp() where id = %s", first.id)
    assert db.places(claim.seq) == ["outcome"]
    assert db.run(quotas.sweep(account)) == 1
    counted(db, account)
    db.do("delete from laneway.sent_events")
    db.do("update laneway.queue_usage set swept_at = '2020-01-01'")
    assert db.one("select laneway.sweep_all_queued(10)") == 2
    assert db.one("select jobs::int from laneway.queued_of(%s)", account) == 0


def test_counters_of_events_differ_from_those_of_jobs(db: StoreClient) -> None:
    first, second = uuid4(), uuid4()
    accounts = [event_account(first), event_account(second)]
    assert len({first, second, *accounts}) == 4
    check = "select laneway.is_event_account(%s)"
    assert [db.one(check, one) for one in (first, second, *accounts)] == [False, False, True, True]


def test_wait_keeps_sender_and_time_of_its_event(db: StoreClient) -> None:
    claim = db.running()
    sent = db.run(sent_events.send("go", "k", "1", workspace="default", sent_by="ann"))
    at = db.one("select sent_at from laneway.sent_events where id = %s", sent.id)
    ask(db, claim)
    db.do("delete from laneway.sent_events")
    (shown,) = db.run(handler_waits.listing(claim.job_id))
    assert (shown.event, shown.key, shown.event_id) == ("go", "k", sent.id)
    assert (shown.sent_by, shown.sent_at) == ("ann", at)


def test_events_of_one_job_are_bounded_together(db: StoreClient) -> None:
    claim = db.running()
    # Small in the table, large for the handler that reads them all again.
    payload = '"' + "x" * 1_000_000 + '"'
    for n in range(17):
        send(db, payload)
        assert ask(db, claim, str(n)).state == "done"
    with pytest.raises(InvalidInput, match="with more than 16777216 it takes no further one"):
        ask(db, claim, "last")
    assert db.run(handler_waits.begin(claim, NewWait("nap", "sleep", 60.0))).state == "open"
    assert ask(db, claim, "0").state == "done"
    assert ask(db, db.running(), "other").state == "done"
