"""Waits in the database: stored once, by the running attempt; a wait and its end never miss."""

from __future__ import annotations

import json
import random
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from laneway.domain.claim import Claim
from laneway.domain.job import NewJob, new_job_id
from laneway.domain.review import JobEdges
from laneway.errors import DatabaseUnavailable, InvalidInput
from laneway.store import flows, handler_waits, sent_events, steps
from laneway.store.batch import Entry
from laneway.store.handler_waits import NewWait, StoredWait, SubJobsWrite
from laneway.store.lanes import peek
from tests.support.store_client import StoreClient

Another = Callable[[], StoreClient]
SLEEP = NewWait("night", "sleep", 3600.0)
EVENT = NewWait("go", "event", None, "go", "k")


def entries(count: int, job_type: str = "part", **options: Any) -> Sequence[Entry]:
    like = NewJob(id=new_job_id(), job_type=job_type, payload="{}", **options)
    return [(new_job_id(), json.dumps({"n": n}), like) for n in range(count)]


def run_all(
    db: StoreClient, claim: Claim, jobs: Sequence[Entry], name: str = "parts"
) -> SubJobsWrite:
    return db.run(handler_waits.submit_sub_jobs(claim, name, len(jobs), 0, jobs))


def subjects(db: StoreClient, claim: Claim) -> list[int]:
    found = db.one("select subjects from laneway.handler_waits where seq = %s", claim.seq)
    return list(found)


def claim_part(db: StoreClient) -> Claim:
    (claim,) = db.claimed(1, ["part"])
    return claim


def look(db: StoreClient) -> None:
    """A poll of some worker."""
    db.run(peek([]))


def advance(db: StoreClient) -> None:
    db.do("select * from laneway.advance(1000)")


def test_wait_moves_job_to_waiting_and_frees_its_slot(db: StoreClient) -> None:
    claim = db.running()
    assert db.run(handler_waits.begin(claim, SLEEP)) == ("kept", "open", None)
    answer = db.settle(claim, "wait", result="night")
    assert answer is not None
    assert (answer.answer, answer.status) == ("accepted", "waiting")
    assert db.places(claim.seq) == ["waiting"]
    assert db.slots_agree()
    row = db.row("attempts", claim.seq)
    assert (row["outcome"], row["error"]) == ("waited", None)


def test_wait_without_a_timeout_never_ends_by_time(db: StoreClient) -> None:
    claim = db.running()
    db.run(handler_waits.begin(claim, EVENT))
    db.settle(claim, "wait", result="go")
    assert db.row("waiting", claim.seq)["wake_at"] is None
    assert db.row("handler_waits", claim.seq)["until"] is None


def test_waits_of_several_jobs_are_read_with_their_answers(db: StoreClient) -> None:
    slept, notified, late, fresh = (db.running() for _ in range(4))
    db.run(handler_waits.begin(slept, SLEEP))
    for claim in (notified, late):
        db.run(handler_waits.begin(claim, EVENT._replace(key=str(claim.seq), seconds=60.0)))
    db.run(sent_events.send("go", str(notified.seq), '{"n": 1}', workspace="default"))
    db.run(handler_waits.begin(notified, EVENT._replace(key=str(notified.seq), seconds=60.0)))
    run_all(db, notified, entries(2))
    db.do("update laneway.handler_waits set done_at = clock_timestamp() where seq = %s", late.seq)
    found = db.run(handler_waits.read([notified, fresh, slept, late]))
    assert found == [
        [
            StoredWait("go", "event", "go", str(notified.seq), None, None, "done", '{"n": 1}'),
            StoredWait("parts", "sub_jobs", total=2, stored=2),
        ],
        [],
        [StoredWait("night", "sleep")],
        [StoredWait("go", "event", "go", str(late.seq), state="timed_out")],
    ]


def test_large_answers_and_those_after_them_are_read_one_by_one(db: StoreClient) -> None:
    claim = db.running()
    # Does not compress.
    noise = [b64encode(random.Random(n).randbytes(15_000)).decode() for n in range(4)]
    for n, text in enumerate(("x" * 100_000, *noise)):
        db.run(sent_events.send("go", "k", json.dumps(text), workspace="default"))
        db.run(handler_waits.begin(claim, EVENT._replace(name=str(n))))
    (found,) = db.run(handler_waits.read([claim]))
    assert [one.state for one in found] == [None, "done", "done", "done", None]
    assert [one.result for one in found] == [None, *map(json.dumps, noise[:3]), None]


def test_answers_are_measured_as_they_are_sent(db: StoreClient) -> None:
    """Not as they are stored: compressed, and numbers in a tenth of their digits."""
    claim = db.running()
    for n, payload in enumerate(('"small"', json.dumps("x" * 70_000), "[" + "1e300," * 300 + "1]")):
        db.run(sent_events.send("go", "k", payload, workspace="default"))
        db.run(handler_waits.begin(claim, EVENT._replace(name=str(n))))
    (found,) = db.run(handler_waits.read([claim]))
    assert [one.state for one in found] == ["done", None, None]


def test_wait_of_a_cancelled_job_has_no_answer(db: StoreClient) -> None:
    claim = db.running()
    db.run(handler_waits.begin(claim, EVENT))
    db.do("update laneway.handler_waits set done_at = '-infinity'")
    assert [one.state for one in db.run(handler_waits.read([claim]))[0]] == [None]


def test_repeated_verdict_of_a_wait_is_accepted(db: StoreClient) -> None:
    """The answer of a settle may be lost."""
    claim = db.running()
    db.run(handler_waits.begin(claim, SLEEP))
    db.settle(claim, "wait", result="night")
    again = db.settle(claim, "wait", result="night")
    assert again is not None
    assert (again.answer, again.status) == ("accepted", "waiting")


def test_due_sleeper_returns_with_its_wait_done(db: StoreClient) -> None:
    claim = db.running()
    db.run(handler_waits.begin(claim, SLEEP))
    db.settle(claim, "wait", result="night")
    look(db)
    assert db.places(claim.seq) == ["waiting"]
    db.do("update laneway.waiting set wake_at = clock_timestamp() - interval '1 s'")
    look(db)
    assert db.places(claim.seq) == ["ready"]
    (again,) = db.claimed(1)
    assert again.attempt == 2
    assert db.run(handler_waits.begin(again, SLEEP)) == ("kept", "done", None)
    assert db.one("select retries from laneway.lease") == 0


def test_caller_with_a_wrong_clock_wakes_no_sleeper(db: StoreClient) -> None:
    claim = db.running()
    db.run(handler_waits.begin(claim, SLEEP))
    db.settle(claim, "wait", result="night")
    db.do("select laneway.peek('{}', clock_timestamp() + interval '2 hours')")
    assert db.places(claim.seq) == ["waiting"]


def test_next_poll_is_due_when_the_first_sleeper_is(db: StoreClient) -> None:
    claim = db.running()
    db.run(handler_waits.begin(claim, SLEEP._replace(seconds=100.0)))
    db.settle(claim, "wait", result="night")
    found = db.run(peek([]))
    assert found.next_due_s is not None
    assert 90 < found.next_due_s <= 100


@pytest.mark.parametrize("wait", [SLEEP, EVENT])
def test_superseded_attempt_stores_no_wait(db: StoreClient, wait: NewWait) -> None:
    old = db.running()
    db.run(sent_events.send("go", "k", "1", workspace="default"))
    db.settle(old, "release")
    db.claimed(1)
    assert db.run(handler_waits.begin(old, wait)).answer == "fenced"
    assert run_all(db, old, entries(2)).answer == "fenced"
    assert db.one("select count(*) from laneway.handler_waits") == 0
    assert db.one("select count(*) from laneway.jobs") == 1


def test_cancelled_attempt_stores_no_sub_jobs(db: StoreClient) -> None:
    claim = db.running()
    db.cancel(claim.seq)
    assert run_all(db, claim, entries(2)).answer == "cancel_requested"
    assert db.one("select count(*) from laneway.jobs") == 1


def test_wait_after_cancel_request_ends_cancelled(db: StoreClient) -> None:
    claim = db.running()
    db.run(handler_waits.begin(claim, SLEEP))
    db.cancel(claim.seq)
    db.settle(claim, "wait", result="night")
    row = db.row("outcome", claim.seq)
    assert (row["status"], row["result"]) == ("cancelled", None)


def test_wait_is_busy_while_another_transaction_locks_the_lease(
    db: StoreClient, another: Another
) -> None:
    claim = db.running()
    other = another()
    with other.conn.transaction():
        other.do("select from laneway.lease where seq = %s for update", claim.seq)
        assert db.run(handler_waits.begin(claim, SLEEP)).answer == "busy"
        assert run_all(db, claim, entries(1)).answer == "busy"
    assert db.run(handler_waits.begin(claim, SLEEP)).answer == "kept"


def test_sub_jobs_are_stored_once_per_name(db: StoreClient) -> None:
    claim = db.running()
    assert run_all(db, claim, entries(3)) == ("kept", 3, ["part"])
    assert run_all(db, claim, entries(3)) == ("kept", 3, None)
    assert db.one("select count(*) from laneway.jobs where job_type = 'part'") == 3
    assert db.one("select missing from laneway.countdowns where seq = %s", claim.seq) == 3


def test_sub_job_names_its_owner_and_not_as_a_follower(db: StoreClient) -> None:
    owner = db.running()
    run_all(db, owner, entries(1))
    (child,) = (row[0] for row in db.rows("select id from laneway.jobs where seq > %s", owner.seq))
    assert db.run(flows.edges(child)) == JobEdges(owner=owner.job_id)
    assert db.run(flows.edges(owner.job_id)) == JobEdges()


def test_sub_jobs_of_a_wait_come_in_parts(db: StoreClient) -> None:
    claim = db.running()
    jobs = entries(5)
    submit = handler_waits.submit_sub_jobs
    assert db.run(submit(claim, "parts", 5, 0, jobs[:2])).stored == 2
    assert db.run(submit(claim, "parts", 5, 0, jobs[:2])).stored == 2
    assert db.run(submit(claim, "parts", 5, 2, jobs[2:])).stored == 5
    with pytest.raises(InvalidInput, match="another wait"):
        db.run(submit(claim, "parts", 6, 5, jobs[:1]))
    ids = [row.id for row in db.run(handler_waits.sub_job_results(claim, "parts", 0))]
    assert ids == [job_id for job_id, _, _ in jobs]


def test_page_of_sub_jobs_ends_where_their_results_are_large(db: StoreClient) -> None:
    claim = db.running()
    run_all(db, claim, entries(3))
    db.settle(claim, "wait", result="parts")
    for _ in range(3):
        db.settle(claim_part(db), "finish", result=f'"{"x" * 1_100_000}"')
    (again,) = db.claimed(1)
    assert len(db.run(handler_waits.sub_job_results(again, "parts", 0))) == 2
    assert len(db.run(handler_waits.sub_job_results(again, "parts", 2))) == 1


def test_owner_returns_when_its_last_sub_job_ends(db: StoreClient) -> None:
    claim = db.running()
    run_all(db, claim, entries(2))
    db.settle(claim, "wait", result="parts")
    db.settle(claim_part(db), "finish", result="1")
    assert db.places(claim.seq) == ["waiting"]
    db.settle(claim_part(db), "giveup", error='{"type": "E", "message": "no"}')
    assert db.places(claim.seq) == ["ready"]
    (again,) = db.claimed(1)
    rows = db.run(handler_waits.sub_job_results(again, "parts", 0))
    assert [(row.status, row.result) for row in rows] == [("completed", "1"), ("failed", None)]


def test_sub_jobs_that_end_before_the_wait_return_it_at_once(db: StoreClient) -> None:
    claim = db.running()
    run_all(db, claim, entries(2))
    for _ in range(2):
        db.settle(claim_part(db), "finish", result="1")
    answer = db.settle(claim, "wait", result="parts")
    assert answer is not None
    assert answer.status == "approved"
    assert db.places(claim.seq) == ["ready"]


@pytest.mark.parametrize("first", ["end", "wait"])
def test_last_end_and_wait_at_the_same_time_miss_nothing(
    db: StoreClient, another: Another, first: str
) -> None:
    claim = db.running()
    run_all(db, claim, entries(1))
    # Of different workers, whose slots are counted apart.
    other = another()
    part = claim_part(other)

    def end(client: StoreClient) -> None:
        client.settle(part, "finish", result="1")

    def wait(client: StoreClient) -> None:
        client.settle(claim, "wait", result="parts")

    earlier, later = (end, wait) if first == "end" else (wait, end)
    with other.conn.transaction():
        earlier(other)
        # Neither waits for the open transaction of the other.
        later(db)
    advance(db)
    assert db.places(claim.seq) == ["ready"]
    assert db.one("select count(*) from laneway.arrivals") == 0


def test_duplicate_sub_job_is_waited_for(db: StoreClient) -> None:
    existing = db.submit("part", unique_key="one")
    claim = db.running()
    run_all(db, claim, entries(2, unique_key="one"))
    assert subjects(db, claim) == [existing, existing]
    db.settle(claim, "wait", result="parts")
    assert db.one("select missing from laneway.countdowns where seq = %s", claim.seq) == 1
    db.settle(claim_part(db), "finish", result="7")
    assert db.places(claim.seq) == ["ready"]
    (again,) = db.claimed(1)
    rows = db.run(handler_waits.sub_job_results(again, "parts", 0))
    assert [row.result for row in rows] == ["7", "7"]


def test_job_cannot_wait_for_itself(db: StoreClient) -> None:
    claim = db.running(unique_key="me")
    with pytest.raises(InvalidInput, match="the job itself"):
        run_all(db, claim, entries(1, "t", unique_key="me"))


def test_sub_jobs_are_nested_at_most_100_deep(db: StoreClient) -> None:
    claim = db.running()
    db.do(
        "insert into laneway.links (seq, owner) select s, s + 1"
        " from generate_series(1000000, 1000100) s union all select %s, 1000000",
        claim.seq,
    )
    with pytest.raises(InvalidInput, match="at most 100 deep"):
        run_all(db, claim, entries(1))


def test_names_of_steps_and_waits_differ(db: StoreClient) -> None:
    claim = db.running()
    db.run(steps.save(claim, "night", "1", 0.0))
    with pytest.raises(InvalidInput, match="a step of this job has the name"):
        db.run(handler_waits.begin(claim, SLEEP))
    db.run(handler_waits.begin(claim, EVENT))
    with pytest.raises(InvalidInput, match="a wait of this job has the name"):
        db.run(steps.save(claim, "go", "1", 0.0))


def test_sub_jobs_stay_in_the_workspace_of_their_job(db: StoreClient) -> None:
    claim = db.running(workspace="acme")
    run_all(db, claim, entries(1))
    assert db.one("select workspace from laneway.jobs where job_type = 'part'") == "acme"
    with pytest.raises(InvalidInput, match="run in the workspace of their job, acme"):
        run_all(db, claim, entries(1, workspace="other"), "more")


def test_deleted_job_leaves_no_waits(db: StoreClient) -> None:
    claim = db.running()
    db.run(handler_waits.begin(claim, SLEEP._replace(seconds=0.0)))
    db.settle(claim, "finish", result="1")
    db.do("select laneway.remove_jobs(array[%s::bigint])", claim.seq)
    assert db.one("select count(*) from laneway.handler_waits") == 0


def failed_owner(db: StoreClient) -> tuple[Claim, Claim]:
    """A job that failed because its sub-job did."""
    owner = db.running(max_retries=0)
    run_all(db, owner, entries(1, max_retries=0))
    part = claim_part(db)
    db.settle(part, "fail", error='{"type": "E", "message": "no"}')
    db.settle(owner, "giveup", error='{"type": "SubJobsFailed", "message": "1 of 1"}')
    return owner, part


def test_retried_owner_waits_for_sub_job_that_was_retried_before_it(db: StoreClient) -> None:
    owner, part = failed_owner(db)
    db.retry(part.seq)
    db.retry(owner.seq)
    assert db.places(owner.seq) == ["waiting"]
    db.settle(claim_part(db), "finish", result="1")
    assert db.places(owner.seq) == ["ready"]


def test_sub_job_retried_while_its_owner_waits_is_waited_for_again(db: StoreClient) -> None:
    owner = db.running()
    run_all(db, owner, entries(2, max_retries=0))
    db.settle(owner, "wait", result="parts")
    first, second = claim_part(db), claim_part(db)
    db.settle(first, "fail", error='{"type": "E", "message": "no"}')
    db.retry(first.seq)
    db.settle(second, "finish", result="2")
    assert db.places(owner.seq) == ["waiting"]
    db.settle(claim_part(db), "finish", result="1")
    assert db.places(owner.seq) == ["ready"]
    (again,) = db.claimed(1)
    rows = db.run(handler_waits.sub_job_results(again, "parts", 0))
    assert [row.result for row in rows] == ["1", "2"]


@pytest.mark.parametrize("is_last", [False, True])
def test_retry_of_a_sub_job_against_the_end_of_another(
    db: StoreClient, another: Another, is_last: bool
) -> None:
    owner, other = db.running(), another()
    run_all(db, owner, entries(2, max_retries=0))
    db.settle(owner, "wait", result="parts")
    first = claim_part(db)
    # Of another worker, whose slots are counted apart.
    second = claim_part(other)
    db.settle(first, "fail", error='{"type": "E", "message": "no"}')
    earlier, later = (other, db) if is_last else (db, other)
    with earlier.conn.transaction():
        if is_last:
            other.settle(second, "finish", result="2")
            retried = later.later(lambda: later.retry(first.seq))
            earlier.await_blocked(later)
        else:
            db.retry(first.seq)
            # It does not wait for the retry.
            other.settle(second, "finish", result="2")
    if is_last:
        retried.result(60)
    advance(db)
    assert db.places(owner.seq) == (["ready"] if is_last else ["waiting"])
    db.settle(claim_part(db), "finish", result="1")
    advance(db)
    assert db.places(owner.seq) == ["ready"]
    assert db.one("select count(*) from laneway.countdowns") == 0


def test_owner_retried_after_its_cancel_keeps_its_sub_jobs(db: StoreClient) -> None:
    owner = db.running()
    run_all(db, owner, entries(2))
    db.settle(owner, "wait", result="parts")
    db.cancel(owner.seq)
    db.retry(owner.seq)
    # What the cancel left to do comes too late.
    advance(db)
    assert db.places(owner.seq) == ["waiting"]
    assert [db.places(seq) for seq in subjects(db, owner)] == [["ready"], ["ready"]]
    for _ in range(2):
        db.settle(claim_part(db), "finish", result="1")
    assert db.places(owner.seq) == ["ready"]


def test_retry_repeats_no_sub_jobs_whose_ends_the_handler_has_met(db: StoreClient) -> None:
    """It tolerated their failures, and was cancelled in a later wait."""
    owner = db.running()
    run_all(db, owner, entries(2, max_retries=0))
    parts = subjects(db, owner)
    db.settle(owner, "wait", result="parts")
    for _ in range(2):
        db.settle(claim_part(db), "fail", error='{"type": "E", "message": "no"}')
    (again,) = db.claimed(1)
    db.run(handler_waits.begin(again, EVENT))
    db.settle(again, "wait", result=EVENT.name)
    db.cancel(owner.seq)
    db.retry(owner.seq)
    advance(db)
    assert db.places(owner.seq) == ["ready"]
    assert [db.places(seq) for seq in parts] == [["outcome"], ["outcome"]]


def test_retry_repeats_sub_jobs_of_one_of_several_waits_at_once(db: StoreClient) -> None:
    """Its handler gathers both waits, and has met the end of none."""
    owner = db.running()
    run_all(db, owner, entries(2, max_retries=0))
    parts = subjects(db, owner)
    db.run(handler_waits.begin(owner, EVENT))
    db.settle(owner, "wait", result="parts")
    db.cancel(owner.seq)
    advance(db)
    assert [db.places(seq) for seq in parts] == [["outcome"], ["outcome"]]
    db.retry(owner.seq)
    advance(db)
    assert db.places(owner.seq) == ["waiting"]
    assert [db.places(seq) for seq in parts] == [["ready"], ["ready"]]


def test_retry_repeats_sub_jobs_that_were_cancelled_after_an_earlier_retry(db: StoreClient) -> None:
    """Its handler had met other ends of them, and asked for a later wait, before that retry."""
    owner = db.running()
    run_all(db, owner, entries(2, max_retries=0))
    parts = subjects(db, owner)
    db.settle(owner, "wait", result="parts")
    for _ in range(2):
        db.settle(claim_part(db), "fail", error='{"type": "E", "message": "no"}')
    (again,) = db.claimed(1)
    db.run(handler_waits.begin(again, EVENT))
    db.settle(again, "giveup", error='{"type": "SubJobsFailed", "message": "no"}')
    db.retry(owner.seq)
    assert db.places(owner.seq) == ["waiting"]
    db.cancel(owner.seq)
    advance(db)
    assert [db.places(seq) for seq in parts] == [["outcome"], ["outcome"]]
    db.retry(owner.seq)
    advance(db)
    assert db.places(owner.seq) == ["waiting"]
    assert [db.places(seq) for seq in parts] == [["ready"], ["ready"]]


def test_retry_names_the_wait_for_sub_jobs_that_outlived_their_owner(db: StoreClient) -> None:
    owner = db.running()
    run_all(db, owner, entries(1, max_retries=0))
    db.settle(owner, "giveup", error='{"type": "E", "message": "no"}')
    db.retry(owner.seq)
    waits = db.row("waiting", owner.seq)
    assert (waits["reason"], waits["name"]) == ("sub_jobs", "parts")
    part = claim_part(db)
    db.settle(part, "finish", result="1")
    assert db.places(owner.seq) == ["ready"]
    assert db.one("select done_at from laneway.handler_waits") is not None


def test_cancel_of_sub_jobs_does_not_decide_during_a_retry(
    db: StoreClient, another: Another
) -> None:
    owner, other = db.running(), another()
    run_all(db, owner, entries(1))
    db.settle(owner, "wait", result="parts")
    db.cancel(owner.seq)
    with other.conn.transaction():
        other.retry(owner.seq)
        advance(db)
        assert db.one("select kind from laneway.arrivals") == "cancelled"
    advance(db)
    assert db.places(owner.seq) == ["waiting"]
    assert [db.places(seq) for seq in subjects(db, owner)] == [["ready"]]
    assert db.one("select count(*) from laneway.arrivals") == 0


def test_sub_jobs_of_a_deleted_owner_are_still_cancelled(db: StoreClient) -> None:
    owner = db.running()
    run_all(db, owner, entries(1))
    db.settle(owner, "wait", result="parts")
    (part,) = subjects(db, owner)
    db.cancel(owner.seq)
    db.do("select laneway.remove_jobs(array[%s::bigint])", owner.seq)
    advance(db)
    assert db.places(part) == ["outcome"]


def test_sub_jobs_do_not_wait_long_for_a_unique_key(db: StoreClient, another: Another) -> None:
    """Meanwhile the lease is locked, so that it is not renewed."""
    owner, other = db.running(), another()
    with other.conn.transaction():
        other.submit("part", unique_key="one")
        refused = db.later(lambda: run_all(db, owner, entries(1, unique_key="one")))
        with pytest.raises(DatabaseUnavailable, match="waited too long"):
            refused.result(30)
        assert other.heartbeat([owner]) == []
    assert run_all(db, owner, entries(1, unique_key="one")).stored == 1


def test_locked_sub_jobs_do_not_hold_up_the_cancel_of_others(
    db: StoreClient, another: Another
) -> None:
    """It is part of every poll."""
    owner, other = db.running(), another()
    run_all(db, owner, entries(12))
    parts = subjects(db, owner)
    running = claim_part(db)
    with other.conn.transaction():
        other.do("select from laneway.ready where seq = any (%s) for key share", parts[1:-1])
        other.do("select from laneway.lease where seq = %s for update", running.seq)
        db.cancel(owner.seq)
        db.do("set statement_timeout = '4s'")
        advance(db)
        assert db.places(parts[-1]) == ["outcome"]
    advance(db)
    assert [db.places(part) for part in parts[1:]] == [["outcome"]] * 11
    assert db.row("lease", running.seq)["cancel_requested_at"] is not None
    assert db.one("select count(*) from laneway.arrivals") == 0
