"""The leader deletes by policy, ends by age, and skips locked rows."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest

from laneway.domain.duration import seconds_of
from laneway.domain.retention import Retention
from laneway.store import health, leases, retention
from laneway.store.leases import LogEntry, Report, Verdict
from laneway.store.retention import LeaderTerm, WalkPosition
from tests.store.test_plans import spent
from tests.support.store_client import StoreClient, error

DAY = 86400
BELONGINGS = ("jobs", "attempts", "progress", "logs", "approvals", "decisions", "steps",
              "deadlines")  # fmt: skip


def lead(db: StoreClient, holder: UUID | None = None) -> LeaderTerm:
    holder = holder or db.worker
    epoch = db.one("select laneway.take_leadership(%s, 3600)", holder)
    return LeaderTerm(holder, epoch)


def ended(db: StoreClient, job_type: str = "t", kind: str = "finish", age_s: float = 0) -> int:
    claim = db.running(job_type)
    db.settle(claim, kind, error=error())
    age(db, claim.seq, age_s)
    return claim.seq


def age(db: StoreClient, seq: int, age_s: float) -> None:
    db.do(
        "update laneway.outcome set finished_at = finished_at - make_interval(secs => %s)"
        " where seq = %s",
        float(age_s),
        seq,
    )


def keeps(db: StoreClient, job_type: str, **columns: Any) -> None:
    """Publish a type with a policy and defaults."""
    db.do("insert into laneway.job_types (name) values (%s) on conflict do nothing", job_type)
    for name, value in columns.items():
        db.do(f"update laneway.job_types set {name} = %s where name = %s", value, job_type)


def walk(db: StoreClient, term: LeaderTerm, **bounds: int) -> int:
    """Walk over all jobs; return the number of deleted ones."""
    removed, place = 0, WalkPosition()
    for _ in range(1000):
        step = db.run(retention.delete_expired(term, place, **bounds))
        assert step is not None
        removed += step.removed
        if step.position is None:
            return removed
        assert step.position.before < place.before
        place = step.position
    raise AssertionError("the walk does not end")


def left(db: StoreClient) -> set[int]:
    return {seq for (seq,) in db.rows("select seq from laneway.outcome")}


# -- what is kept -----------------------------------------------------------------------------


@pytest.mark.parametrize("is_published", [True, False])
@pytest.mark.parametrize("kind,days", [("finish", 7), ("cancel", 7), ("giveup", 30)])
def test_defaults_keep_a_week_and_failures_a_month(
    db: StoreClient, kind: str, days: int, is_published: bool
) -> None:
    if is_published:
        keeps(db, "t")
    young = ended(db, kind=kind, age_s=days * DAY - 60)
    ended(db, kind=kind, age_s=days * DAY + 60)
    assert walk(db, lead(db)) == 1
    assert left(db) == {young}


def test_new_row_of_a_type_has_the_defaults_of_a_handler(db: StoreClient) -> None:
    keeps(db, "t")
    row = db.rows(
        "select keep_completed_s, keep_cancelled_s, keep_failed_s, keep_count, max_age_s"
        " from laneway.job_types where name = 't'"
    )
    by_default = Retention()
    ages = (by_default.completed, by_default.cancelled, by_default.failed)
    ages_s = [None if age is None else seconds_of(age) for age in ages]
    assert row == [(*ages_s, by_default.count, None)]


def test_policy_of_null_keeps_for_ever_and_of_zero_a_minute(db: StoreClient) -> None:
    keeps(db, "t", keep_completed_s=None, keep_failed_s=0)
    old = ended(db, age_s=5000 * DAY)
    fresh = ended(db, kind="giveup", age_s=30)
    ended(db, kind="giveup", age_s=90)
    assert walk(db, lead(db)) == 1
    assert left(db) == {old, fresh}


def test_job_goes_with_all_that_belongs_to_it_and_nothing_of_others(db: StoreClient) -> None:
    seqs = []
    for age_s in (8 * DAY, 0):
        claim = db.running(unique_key=f"k{age_s}")
        db.settle(claim, "fail", delay_s=0)
        (claim,) = db.claimed()
        db.report([Report(claim, done=1)], [LogEntry(claim, 1, "info", "m", 0)])
        db.do("insert into laneway.steps (seq, name, attempt) values (%s, 'a', 1)", claim.seq)
        db.do("insert into laneway.approvals (seq) values (%s)", claim.seq)
        db.do("insert into laneway.deadlines values (%s, 'infinity')", claim.seq)
        db.do(
            "insert into laneway.decisions (seq, decision, decided_at) values (%s, 'x', now())",
            claim.seq,
        )
        db.settle(claim, "finish")
        age(db, claim.seq, age_s)
        seqs.append(claim.seq)
    assert walk(db, lead(db)) == 1
    for table in BELONGINGS:
        found = {seq for (seq,) in db.rows(f"select seq from laneway.{table}")}
        assert found == {seqs[1]}, table


def test_only_the_newest_of_a_counted_type_stay_however_small_the_steps(db: StoreClient) -> None:
    keeps(db, "few", keep_count=3)
    keeps(db, "none", keep_count=0)
    few = [ended(db, "few", age_s=120) for _ in range(9)]
    others = []
    for _ in range(4):
        ended(db, "none", age_s=120)
        others.append(ended(db, "t", age_s=120))
    few += [ended(db, "few", age_s=120) for _ in range(2)]
    assert walk(db, lead(db), scan=3, limit=2) == (11 - 3) + 4
    assert left(db) == {*few[-3:], *others}
    assert walk(db, lead(db), scan=3, limit=2) == 0


def test_step_looks_at_and_removes_a_bounded_number(db: StoreClient) -> None:
    for i in range(10):
        ended(db, age_s=8 * DAY if i % 2 else 0)
    term = lead(db)
    first = db.run(retention.delete_expired(term, WalkPosition(), scan=10, limit=2))
    assert first is not None
    assert first.removed == 2
    assert walk(db, term, scan=2, limit=2) == 3
    assert len(left(db)) == 5


# -- who may, and whom it leaves alone --------------------------------------------------------


def test_former_leader_deletes_nothing(db: StoreClient) -> None:
    ended(db, age_s=400 * DAY)
    term = lead(db)
    stale = [LeaderTerm(uuid4(), term.epoch), term._replace(epoch=term.epoch - 1)]
    for other in stale:
        assert db.run(retention.delete_expired(other, WalkPosition())) is None
        assert db.run(retention.expire_overaged(other)).ended is None
    db.do("update laneway.leader set held_until = clock_timestamp() - interval '1 s'")
    assert db.run(retention.delete_expired(term, WalkPosition())) is None
    assert len(left(db)) == 1


def test_job_that_is_being_retried_is_left_alone(db: StoreClient, other: StoreClient) -> None:
    seqs = [ended(db, kind="giveup", age_s=40 * DAY) for _ in range(3)]
    other.begin()
    other.retry(seqs[1])
    assert walk(db, lead(db)) == 2
    other.commit()
    assert db.places(seqs[1]) == ["ready"]
    assert walk(db, lead(db)) == 0
    assert db.rows("select seq from laneway.jobs") == [(seqs[1],)]


def test_retry_that_waits_for_the_removal_finds_no_job(db: StoreClient, other: StoreClient) -> None:
    seq = ended(db, kind="giveup", age_s=40 * DAY)
    job_id = db.id_of(seq)
    term = lead(db)
    db.begin()
    assert walk(db, term) == 1
    retried = other.later(lambda: other.rows("select found_in from laneway.retry(%s)", seq))
    db.await_blocked(other)
    db.commit()
    assert retried.result() == [(None,)]
    assert db.rows("select 1 from laneway.jobs where id = %s", job_id) == []


def test_jobs_that_have_not_ended_are_never_removed(db: StoreClient) -> None:
    keeps(db, "t", keep_completed_s=0, keep_cancelled_s=0, keep_failed_s=0, keep_count=0)
    seqs = [db.submit(), db.submit(delay=60.0), db.running("u").seq]
    db.do("update laneway.jobs set created_at = created_at - interval '10 years'")
    assert walk(db, lead(db)) == 0
    assert all(len(db.places(seq)) == 1 for seq in seqs)


# -- max_age ----------------------------------------------------------------------------------


def overdue(db: StoreClient, *seqs: int) -> None:
    for seq in seqs:
        db.do(
            "insert into laneway.deadlines values (%s, clock_timestamp() - interval '1 s')"
            " on conflict (seq) do update set at = excluded.at",
            seq,
        )


def expire(db: StoreClient, limit: int = 200) -> int:
    """Run all passes; return the number of ended jobs."""
    term, count = lead(db), 0
    while True:
        answer = db.run(retention.expire_overaged(term, limit))
        assert answer.ended is not None
        count += answer.ended
        if not answer.more:
            return count


def test_waiting_jobs_over_their_age_fail_with_the_reason(db: StoreClient) -> None:
    keeps(db, "t", max_age_s=90)
    seqs = [db.submit(unique_key="k", priority=3), db.submit(delay=60.0)]
    overdue(db, *seqs)
    assert expire(db) == 2
    for seq in seqs:
        assert db.places(seq) == ["outcome"]
        row = db.row("outcome", seq)
        assert (row["status"], row["job_type"], row["claimed_at"]) == ("failed", "t", None)
        assert row["error"] == {
            "type": "MaxAge", "message": "older than max_age of 90 s", "public": True,
        }  # fmt: skip
    assert db.row("outcome", seqs[0])["priority"] == 3
    assert db.rows("select 1 from laneway.deadlines") == []
    assert db.rows("select 1 from laneway.job_keys") == []


def test_one_that_waits_for_its_analysis_fails_under_its_own_type(db: StoreClient) -> None:
    seq = db.submit()
    db.do("update laneway.ready set job_type = laneway.analysis_of(job_type)")
    overdue(db, seq)
    assert expire(db) == 1
    assert db.row("outcome", seq)["job_type"] == "t"


def test_one_that_waits_for_approval_fails_too(db: StoreClient) -> None:
    seq = db.submit()
    db.do("delete from laneway.ready")
    db.do(
        "insert into laneway.awaiting (seq, job_type, workspace, rank, expires_at)"
        " values (%s, 't', 'default', 0, 'infinity')",
        seq,
    )
    overdue(db, seq)
    assert expire(db) == 1
    assert db.row("outcome", seq)["status"] == "failed"
    assert db.rows("select 1 from laneway.awaiting") == []


def test_running_job_over_its_age_fails_and_its_worker_is_fenced(db: StoreClient) -> None:
    keeps(db, "t", max_age_s=0.5)
    claim = db.running()
    overdue(db, claim.seq)
    assert expire(db) == 1
    assert db.row("outcome", claim.seq)["error"]["message"] == "older than max_age of 0.5 s"
    assert [a.answer for a in db.heartbeat([claim])] == ["fenced"]
    answer = db.settle(claim, "finish")
    assert answer is not None
    assert answer.answer == "fenced"
    assert db.slots_agree()


def test_running_job_that_was_asked_to_stop_ends_cancelled(db: StoreClient) -> None:
    claim = db.running()
    db.cancel(claim.seq)
    overdue(db, claim.seq)
    assert expire(db) == 1
    assert db.row("outcome", claim.seq)["status"] == "cancelled"


def test_running_jobs_of_several_lanes_all_end(db: StoreClient) -> None:
    db.do("update laneway.worker_lanes set max_slots = null")
    claims = [db.running(t) for t in ("t", "polarity", "restore", "projection", "u")]
    overdue(db, *(c.seq for c in claims))
    assert expire(db, limit=3) == 5
    assert db.slots_agree()
    assert db.rows("select 1 from laneway.deadlines") == []


def test_deadline_of_a_job_that_ended_or_is_gone_is_dropped(db: StoreClient) -> None:
    done = ended(db)
    overdue(db, done, 987654321)
    assert expire(db) == 0
    assert db.rows("select 1 from laneway.deadlines") == []
    assert db.row("outcome", done)["status"] == "completed"


def test_locked_rows_are_left_for_next_pass(db: StoreClient, other: StoreClient) -> None:
    waiting, claim = db.submit("u"), db.running()
    overdue(db, waiting, claim.seq)
    other.begin()
    other.do("select from laneway.ready for update")
    other.do("select from laneway.lease for update")
    assert expire(db) == 0
    other.rollback()
    assert expire(db) == 2
    assert db.slots_agree()


def test_every_end_with_an_error_stores_its_type(db: StoreClient) -> None:
    """Failures are searched by it, without reading their tracebacks."""
    for kind in ("Boom", "x" * 300):
        db.settle(db.running(), "giveup", error=error(kind))
    db.settle(db.running(), "finish")
    old, lost = db.submit(), db.submit()
    overdue(db, old)
    assert expire(db) == 1
    db.do("delete from laneway.ready where seq = %s", lost)
    db.run(health.end_lost([lost]))
    stored = db.rows("select error_type, left(error ->> 'type', 200) from laneway.outcome")
    assert len(stored) == 5
    assert all(own == whole for own, whole in stored)
    assert {"Boom", "x" * 200, "Lost", None} < {own for own, _ in stored}


def test_job_that_is_not_due_stays(db: StoreClient) -> None:
    seq = db.submit()
    db.do("insert into laneway.deadlines values (%s, clock_timestamp() + interval '1 h')", seq)
    assert expire(db) == 0
    assert db.places(seq) == ["ready"]


def test_key_that_was_handed_to_an_overaged_job_goes_to_the_next(db: StoreClient) -> None:
    first, second = db.submit(), db.submit()
    db.do("update laneway.jobs set concurrency_key = 'doc'")
    db.do(
        "with w as (delete from laneway.ready where seq = %s returning *)"
        " insert into laneway.key_waiters select seq, 'default', 'doc', rank, job_type, attempt,"
        " retries, false, ready_at from w",
        second,
    )
    overdue(db, first)
    answer = db.run(retention.expire_overaged(lead(db)))
    assert answer.ended == 1
    assert db.places(second) == ["ready"]
    assert db.places(second) == ["ready"]


def test_expired_job_frees_its_limit_for_waiting_jobs(db: StoreClient) -> None:
    db.do("insert into laneway.limits (name, max_concurrent) values ('press', 1)")
    db.do("insert into laneway.job_types (name, limits) values ('print', '{press}')")
    first = db.running("print")
    db.submit("print")
    overdue(db, first.seq)
    answer = db.run(retention.expire_overaged(lead(db)))
    assert (answer.ended, answer.job_types) == (1, ["print"])


# -- the rest ---------------------------------------------------------------------------------


def test_approvals_expire_only_for_the_leader(db: StoreClient) -> None:
    seq = db.submit()
    db.do("delete from laneway.ready")
    db.do(
        "insert into laneway.awaiting (seq, job_type, workspace, rank, expires_at)"
        " values (%s, 't', 'default', 0, clock_timestamp() - interval '1 s')",
        seq,
    )
    assert db.run(retention.expire_approvals(LeaderTerm(uuid4(), 1))) == 0
    assert db.run(retention.expire_approvals(lead(db))) == 1
    row = db.row("outcome", seq)
    assert (row["status"], row["cancel_reason"]) == ("cancelled", "approval expired")
    assert db.row("approvals", seq)["decision"] == "expired"


def test_keys_and_finished_leases_are_swept_only_by_the_leader(db: StoreClient) -> None:
    for statement in (retention.sweep_keys, retention.release_self_finished):
        assert db.run(statement(LeaderTerm(uuid4(), 1))) == 0
        assert db.run(statement(lead(db))) == 0


def test_old_slots_go_but_the_newest_of_a_schedule_stays(db: StoreClient) -> None:
    for name, days in (("a", 40), ("a", 35), ("a", 1), ("b", 400), ("b", 300)):
        db.do(
            "insert into laneway.schedule_slots (schedule, slot, outcome, at) values (%s,"
            " clock_timestamp() - make_interval(days => %s), 'submitted',"
            " clock_timestamp() - make_interval(days => %s))",
            name,
            days,
            days,
        )
    assert db.run(retention.prune_records(LeaderTerm(uuid4(), 1))) == 0
    term = lead(db)
    assert db.run(retention.prune_records(term, limit=2)) == 2
    assert db.run(retention.prune_records(term, limit=2)) == 1
    kept = db.rows("select schedule, count(*) from laneway.schedule_slots group by 1 order by 1")
    assert kept == [("a", 1), ("b", 1)]


def test_old_slots_are_found_without_reading_the_others(db: StoreClient) -> None:
    """Also those of deleted schedules."""
    db.do(
        "insert into laneway.schedule_slots (schedule, slot, outcome, at)"
        " select 's' || mod(n, 3), t, 'submitted', t from generate_series(1, 9000) n,"
        "  lateral (select clock_timestamp() - make_interval(mins => n) as t) x"
    )
    db.do(
        "insert into laneway.schedule_slots (schedule, slot, outcome, at)"
        " select 's1', t, 'submitted', t from generate_series(1, 30) n,"
        "  lateral (select clock_timestamp() - make_interval(days => 40, mins => n) as t) x"
    )
    term = lead(db)
    used = spent(db, lambda: db.run(retention.prune_records(term, limit=20)))
    assert used.scans["schedule_slots"] == 0
    assert used["schedule_slots"] < 100
    for removed in (20, 10, 0):
        assert db.run(retention.prune_records(term, limit=20)) == removed
    assert db.one("select count(*) from laneway.schedule_slots where schedule ~ '^s'") == 9000


def test_functions_with_owners_rights_take_no_clock(db: StoreClient) -> None:
    """A role could delete what is kept, or end the waits of others, before their time."""
    assert (
        db.rows(
            "select proname::text from pg_proc where pronamespace = 'laneway'::regnamespace"
            " and prosecdef and 'p_now' = any (proargnames)"
        )
        == []
    )


def test_control_changes_are_kept_for_a_year(db: StoreClient) -> None:
    for days in (400, 370, 300):
        db.do(
            "insert into laneway.control_history (by, kind, name, at)"
            " values ('me', 'lane', 'x', clock_timestamp() - make_interval(days => %s))",
            days,
        )
    assert db.run(retention.prune_records(lead(db))) == 2
    assert db.one("select count(*) from laneway.control_history where by = 'me'") == 1


def test_expired_sessions_links_and_responses_are_deleted(db: StoreClient) -> None:
    """Expired sessions and links, and stored responses after a day."""
    someone = uuid4()
    db.do(
        "insert into laneway.principals (id, name, kind, created_by)"
        " values (%s, 'ann', 'person', 'me')",
        someone,
    )
    for n, age_s in enumerate((-60, 60, 120, DAY - 60, DAY + 60)):
        db.do(
            "insert into laneway.sessions (digest, principal_id, csrf, expires_at)"
            " values (sha256(%s), %s, '', clock_timestamp() - make_interval(secs => %s))",
            bytes([n]),
            someone,
            age_s,
        )
        db.do(
            "insert into laneway.login_links (digest, principal_id, expires_at)"
            " values (sha256(%s), %s, clock_timestamp() - make_interval(secs => %s))",
            bytes([n]),
            someone,
            age_s,
        )
        db.do(
            "insert into laneway.idempotency (principal_id, key, digest, made_at)"
            " values (%s, %s, '', clock_timestamp() - make_interval(secs => %s))",
            someone,
            str(n),
            age_s,
        )
    term = lead(db)
    assert db.run(retention.prune_records(term, limit=3)) == 3 + 3 + 1
    assert db.run(retention.prune_records(term, limit=3)) == 1 + 1
    left = [db.one(f"select count(*) from laneway.{t}")
            for t in ("sessions", "login_links", "idempotency")]  # fmt: skip
    assert left == [1, 1, 4]


def test_claims_continue_during_uncommitted_delete(db: StoreClient, other: StoreClient) -> None:
    for _ in range(20):
        ended(db, age_s=8 * DAY)
    waiting = [db.submit() for _ in range(5)]
    term = lead(db)
    db.begin()
    assert walk(db, term) == 20
    other.do("set lock_timeout = '1s'")
    claims = other.claimed(5)
    assert [c.seq for c in claims] == waiting
    other.run(leases.settle([Verdict(c, "finish") for c in claims]))
    db.commit()
    assert left(db) == set(waiting)


def test_hostile_policies_do_not_stop_the_walk(db: StoreClient) -> None:
    keeps(db, "t", keep_completed_s=1e300, keep_count=2**31 - 1)
    seq = ended(db, age_s=5000 * DAY)
    gone = ended(db, "u", age_s=8 * DAY)
    db.do("update laneway.outcome set result = %s where seq = %s", json.dumps("x" * 9000), gone)
    assert walk(db, lead(db)) == 1
    assert left(db) == {seq}


# -- cost -------------------------------------------------------------------------------------

MANY = 20_000
FILL = f"""
with j as (insert into laneway.jobs (id, job_type, payload)
           select gen_random_uuid(), 'many', '{{}}' from generate_series(1, {MANY}) returning seq)
insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries,
                             finished_at)
select seq, 'completed', 'default', 'many', 0, 1, 0,
       clock_timestamp() - make_interval(days => (seq % 2)::integer * 10) from j
"""


@pytest.mark.parametrize("counted", [False, True])
def test_retention_step_reads_only_its_page(db: StoreClient, counted: bool) -> None:
    db.do(FILL)
    if counted:
        keeps(db, "many", keep_count=100)
    term = lead(db)
    middle = WalkPosition(db.one("select max(seq) from laneway.outcome") - MANY // 2, {"many": 90})

    def step() -> None:
        db.run(retention.delete_expired(term, middle, scan=1000, limit=100))

    for _ in range(7):  # past the point where the server may keep a plan
        spent(db, step)
    used = spent(db, step)
    assert used["outcome"] <= 1000 + 5 * 100
    assert used["jobs"] <= 2 * 100
    assert max(used[t] for t in ("attempts", "progress", "logs", "steps", "approvals")) == 0


def test_expiry_reads_only_overdue_jobs(db: StoreClient) -> None:
    db.do(
        "with j as (insert into laneway.jobs (id, job_type, payload)"
        f" select gen_random_uuid(), 'many', '{{}}' from generate_series(1, {MANY}) returning seq),"
        " w as (insert into laneway.ready (seq, job_type, rank) select seq, 'many', 0 from j)"
        " insert into laneway.deadlines select seq, clock_timestamp() + interval '1 h' from j"
    )
    overdue(db, *(seq for (seq,) in db.rows("select seq from laneway.jobs limit 50")))
    term = lead(db)
    used = spent(db, lambda: db.run(retention.expire_overaged(term)))
    assert used["deadlines"] <= 5 * 50
    assert max(used["ready"], used["jobs"], used["outcome"]) <= 5 * 50
