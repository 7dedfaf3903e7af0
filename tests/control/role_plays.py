"""The work of each database role: every statement of its list at least once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg

from laneway.client import Client
from laneway.config.settings import Settings
from laneway.domain.actor import Actor
from laneway.domain.approval import Analysis, Approval, analysis_of
from laneway.domain.audit import AuditFilter
from laneway.domain.bounds import USUAL
from laneway.domain.claim import Claim
from laneway.domain.filter import JobFilter
from laneway.domain.job import NewJob, new_job_id
from laneway.domain.lane import Lane
from laneway.domain.limit import Limit
from laneway.domain.payload import DEFAULT_LIMITS
from laneway.domain.permissions import Reach, Term
from laneway.domain.schedule import Schedule
from laneway.domain.states import Status
from laneway.store import (
    access,
    approvals,
    audit,
    bulk,
    call_limits,
    caller_transaction,
    events,
    explain,
    freeze,
    grouped_submit,
    health,
    history,
    idempotency,
    job_types,
    jobs,
    lanes,
    leases,
    limits,
    migrate,
    notify,
    quotas,
    retention,
    row_security,
    schedules,
    stats,
    steps,
    workers,
)
from laneway.store.grants import privileges
from laneway.store.leases import LogEntry, Report, Verdict
from laneway.store.older_names import OLDER_NAMES
from laneway.store.retention import LeaderTerm, WalkPosition
from laneway.store.schedules import SlotEntry
from tests.control.access_play import play_access
from tests.control.remote_play import play_remote
from tests.control.scene import Scene
from tests.control.turn_play import play_holds, play_turns, prepare_turns
from tests.support.store_client import PAST_CHECKS

OWN = Reach((Term(owner="me"),))
REACH = Reach((*OWN.terms, Term(workspace="ours")))


class Cast(Scene):
    """A scene played by another role, that remembers which statements were run."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        super().__init__(conn)
        self.ran: set[str] = set()


def prepare_worker(cast: Cast) -> None:
    for _ in range(5):
        cast.submit("ingestion", unique_key=str(uuid4()))
    cast.submit("polarity", delay=60.0)
    cast.conn.execute("update laneway.delayed set run_at = clock_timestamp() - interval '1 s'")
    cast.conn.execute("update laneway.worker_lanes set max_slots = 9 where name = 'interactive'")
    cast.conn.execute(
        "insert into laneway.limits (name, rate_count, rate_period_s) values ('rated', 9, 1)"
    )
    prepare_leader(cast)
    prepare_gates(cast)
    prepare_turns(cast)
    for _ in range(3):
        cast.submit("same", concurrency_key="same")
    cast.run(caller_transaction.finish(cast.running("apart"), "1", 0.1))


def play_keys(cast: Cast) -> None:
    """Of three jobs with one key one runs; one is met by its claim, one is looked for."""
    (claim,) = cast.claim("same", room=2)
    assert cast.run(leases.park(["same"], 10)) == 1
    found = cast.conn.execute(
        "select f.seq, j.id, f.attempt from laneway.self_finished f"
        " join laneway.jobs j on j.seq = f.seq where j.job_type = 'apart'"
    ).fetchone()
    assert found is not None
    both = [Verdict(claim, "finish"), Verdict(Claim(*found), "confirm")]
    assert "promoted" in {answer.answer for answer in cast.run(leases.settle(both))}


def prepare_gates(cast: Cast) -> None:
    """One type that is analysed, one that is only approved, one that asks after the submit."""
    cast.submit("early")
    cast.publish("early", approval=Approval(), has_analysis=True)
    cheap = Approval(below_cost=5, currency="EUR")
    cast.publish("costly", approval=cheap, has_analysis=True, max_age_s=3600.0)
    cast.publish("gated", approval=Approval(two_person=True))
    for _ in range(2):
        cast.submit("costly")


def play_gates(cast: Cast) -> None:
    """From an analysis to a run, and back to the next analysis."""
    for cost in (1, 9):
        (claim,) = cast.claim(analysis_of("costly"))
        analysis = json.dumps(Analysis(cost=cost, currency="EUR").to_dict())
        for _ in range(2):
            cast.settle(claim, "analyzed", result=analysis)
    (sealed,) = cast.claim("costly")
    cast.settle(sealed)
    assert cast.claim("early") == []


def play_earlier_worker(cast: Cast) -> None:
    """As workers of the version before clear what they counted."""
    for table in ("slot_usage", "limit_usage"):
        query = f"delete from laneway.{table} where worker_id = %s and running = 0"
        cast.conn.execute(query.encode(), [uuid4()])


def play_earlier_server(cast: Cast) -> None:
    """As servers of the version before store a batch."""
    row = cast.conn.execute("select nextval('laneway.jobs_seq_seq')").fetchone()
    assert row is not None
    for text in (
        (
            "insert into laneway.jobs (seq, id, job_type, payload)"
            " values (%(n)s, gen_random_uuid(), 'early', '{}')"
        ),
        (
            "insert into laneway.job_keys values ('default', 'early', %(n)s::text, %(n)s)"
            " on conflict do nothing returning seq"
        ),
        "insert into laneway.deadlines (seq, at) values (%(n)s, now())",
        "insert into laneway.ready (seq, job_type, rank) values (%(n)s, 'early', 0)",
        (
            "insert into laneway.delayed (seq, job_type, rank, run_at)"
            " select 0, 'early', 0, now() where %(n)s < 0"
        ),
        "select laneway.place(seq, now(), null) from laneway.jobs where seq < 0 and %(n)s > 0",
    ):
        cast.conn.execute(text.encode(), {"n": row[0]})


def play_earlier_reader(cast: Cast) -> None:
    """As the version before reads what is in use."""
    for table in ("slot_usage", "limit_usage"):
        cast.conn.execute(f"select sum(running) from laneway.{table}".encode())


def play_older_names(cast: Cast, role: str) -> None:
    """As programs of landed versions call functions, under the names of then."""
    granted = {p.name for p in privileges(role) if p.kind == "function"}
    for name in OLDER_NAMES.keys() & granted:
        row = cast.conn.execute(
            "select pronargs from pg_proc where oid = to_regproc('laneway.' || %s::text)", [name]
        ).fetchone()
        assert row is not None
        # The right to call it is checked before the condition.
        nulls = ", ".join(["null"] * row[0])
        cast.conn.execute(f"select laneway.{name}({nulls}) where false".encode())


def play_worker(cast: Cast, _: None) -> None:
    play_earlier_worker(cast)
    play_older_names(cast, "worker")
    read_migrations(cast)
    play_gates(cast)
    play_turns(cast)
    cast.run(lanes.create(Lane("video"), "worker"))
    cast.run(lanes.adopt_type("video", "encode", "worker"))
    cast.run(lanes.adopt_types([("audio", "mix")], "worker"))
    assert cast.run(limits.find(["codec"])) == set()
    assert cast.run(limits.create(Limit("codec"), "worker")) is not None
    cast.publish("encode")
    assert cast.run(workers.conflicts(["encode"])) == []
    assert cast.run(job_types.publishers(["encode"], stale_only=True, limit=1)) == []
    cast.run(job_types.touch_publishers([("encode", "app")]))
    cast.register(("ingestion",))
    cast.run(workers.touch(cast.worker_id))
    assert cast.run(lanes.peek(["ingestion", "polarity"])).promoted == ["polarity"]
    assert cast.run(lanes.find_below_floors([("ingestion", 0, 0)])) == set()
    assert cast.run(lanes.find_horizon()) > 0
    done, failing, silent, held, snoozed = cast.claim("ingestion", room=5, origins=True)
    cast.conn.execute("update laneway.lease set attempt = 200 where seq = %s", [snoozed.seq])
    assert cast.run(leases.settle([Verdict(snoozed._replace(attempt=200), "snooze")]))
    assert cast.run(leases.heartbeat([done.seq], [1])) == []
    lines = [LogEntry(done, 1, "INFO", "hello", 0.0)]
    assert cast.run(leases.report([Report(done, done=1.0)], lines)) == []
    fenced = Verdict(done._replace(attempt=9), "finish")
    answers = cast.run(
        leases.settle([Verdict(done, "finish", "1"), Verdict(failing, "fail", delay_s=0.0), fenced])
    )
    assert sorted(answer.answer for answer in answers) == ["accepted", "fenced"]
    play_calls(cast, held)
    play_keys(cast)
    play_scheduler(cast)
    play_leader(cast, cast.run(leases.run_watchdog(cast.worker_id, 10.0)).epoch)
    # Its worker has renewed none of the others since: it was not lost alone.
    cast.conn.execute(
        "update laneway.lease set lease_seconds = 3600, lease_until ="
        " clock_timestamp() + case when seq = %s then -1 else 60 end * interval '1 s'",
        [silent.seq],
    )
    assert cast.run(leases.run_watchdog(cast.worker_id, 10.0)).reclaimed == 1
    assert cast.run(leases.fail_worker(cast.worker_id, "gone", hung=True, culprit=held.seq)) > 0
    cast.run(leases.resign(cast.worker_id))
    cast.run(workers.stop(cast.worker_id))
    cast.run(workers.sweep(cast.worker_id))
    cast.run(notify.wake("wake *"))


def prepare_leader(cast: Cast) -> None:
    """One job for each duty of the leader."""
    late, asks, waits = (cast.submit(t, concurrency_key="k") for t in ("late", "asks", "waits"))
    finished = cast.running("finished", unique_key="own")
    cast.run(caller_transaction.finish(finished, "1", 0.1))
    cast.conn.execute(
        "insert into laneway.deadlines select seq, clock_timestamp() from laneway.jobs"
        " where id = %s on conflict do nothing",
        [late],
    )
    cast.conn.execute(
        "with w as (delete from laneway.ready r using laneway.jobs j where j.id = %s"
        " and r.seq = j.seq returning r.seq, r.rank)"
        " insert into laneway.awaiting (seq, job_type, workspace, rank, expires_at)"
        " select seq, 'asks', 'default', rank, clock_timestamp() from w",
        [asks],
    )
    cast.conn.execute(
        "with w as (delete from laneway.ready r using laneway.jobs j where j.id = %s"
        " and r.seq = j.seq returning r.*) insert into laneway.key_waiters"
        " select seq, 'default', 'k', rank, job_type, attempt, retries, false, ready_at from w",
        [waits],
    )


def play_leader(cast: Cast, epoch: int) -> None:
    term = LeaderTerm(cast.worker_id, epoch)
    assert cast.run(retention.expire_overaged(term)).ended == 1
    for duty in (retention.expire_approvals, retention.release_self_finished):
        assert cast.run(duty(term)) == 1, duty
    # Two keys without a holder: the one of play_keys, and the one put aside by hand.
    assert cast.run(retention.sweep_keys(term)) == 2
    cast.run(retention.recount_usage(term))
    cast.run(retention.prune_events(term, 60.0))
    cast.run(retention.prune_records(term))
    cast.run(retention.delete_expired(term, WalkPosition()))


def play_calls(cast: Cast, claim: Claim) -> None:
    assert cast.run(steps.save(claim, "one", "1", 0.1)).answer == "kept"
    assert cast.run(steps.read(claim)) == {"one": "1"}
    assert cast.run(call_limits.acquire(claim, {"rated": 1})).answer == "granted"
    assert cast.run(call_limits.release(claim, {"rated": 0})) == "given"


def play_scheduler(cast: Cast) -> None:
    holder, long_ago = cast.worker_id, datetime(2026, 1, 1, tzinfo=UTC)
    epoch = cast.run(leases.run_watchdog(holder, 10.0)).epoch
    for name, check in (("hourly", None), ("full", "is_full")):
        given = {"name": name, "job_type": "t", "cron": "0 * * * *", "check_name": check}
        assert cast.run(schedules.create(Schedule.of(given), "worker", DEFAULT_LIMITS))
    for due in cast.run(schedules.find_due(holder, ["is_full"])).due:
        cast.run(schedules.plan(due.name, due.seen, long_ago))
    found = {due.name: due for due in cast.run(schedules.find_due(holder, ["is_full"])).due}
    checked, plain = found["full"], found["hourly"]
    cast.run(schedules.find_ahead())
    assert cast.run(schedules.scopes())
    cast.run(schedules.replan(plain, long_ago))
    entry = SlotEntry(long_ago, "submitted")
    assert cast.run(schedules.fire(plain, [entry], long_ago, holder, epoch)).taken == 1
    assert cast.run(schedules.begin_check(checked, holder, 60.0))
    cast.run(schedules.release_checks(holder))
    assert cast.run(schedules.stop("full", checked.seen, "no"))


def prepare_handler(cast: Cast) -> list[Claim]:
    return [cast.running("a", unique_key="u"), cast.running("b")]


def play_handler(cast: Cast, props: list[Claim]) -> None:
    read_migrations(cast)
    play_older_names(cast, "handler")
    finished, guarded = props
    held = cast.run(caller_transaction.guard(guarded))
    assert held.answer == "held"
    assert cast.run(caller_transaction.is_still_in(held.xid))
    assert cast.run(caller_transaction.finish(finished, "1", 0.1)) == "finished"


def prepare_client(cast: Cast) -> dict[str, Any]:
    if cast.run(workers.published(["costly"])) == {}:
        prepare_gates(cast)
    cast.conn.execute(
        "insert into laneway.limits (name, rate_count, rate_period_s, scope)"
        " values ('near', 9, 1, 'host') on conflict do nothing"
    )
    cast.publish("limited", limits=("near",))
    _, handed, waiting = (cast.submit("keyed", concurrency_key="one") for _ in range(3))
    cast.settle(cast.claim("keyed", room=3)[0])
    return {
        "keyed": [handed, waiting],
        "limited": cast.submit("limited"),
        "running": cast.running("a").job_id,
        "ended": cast.completed("b"),
    }


def play_client(cast: Cast, props: dict[str, Any]) -> None:
    read_migrations(cast)
    waiting = cast.submit(unique_key="k")
    assert cast.submit(unique_key="k") == waiting
    cast.conn.execute("select laneway.submit('greet', '{\"by\": \"SQL\"}')")
    client = Client(None, Settings.load())  # type: ignore[arg-type]
    batch = [("bulk", {}, {"unique_key": "k"}), ("bulk", {}, {"delay": 60}), ("bulk", {})]
    for _ in range(2):
        made = asyncio.run(client.submit_many(batch, conn=cast.conn))
    assert [job.duplicate for job in made] == [True, False, False]
    gated = [("costly", {}), ("gated", {}, {"created_by": "me"})]
    made = asyncio.run(client.submit_many(gated, conn=cast.conn))
    assert [job.status for job in made] == ["pending", "awaiting_approval"]
    cast.submit("unheard_of", needs="approval")
    for job in made:
        assert cast.run(jobs.cancel(job.id, "me", None)).found_in == job.status
    cast.run(audit.record("me", "job.cancelled", "job", str(waiting)))
    play_holds(cast)
    cast.run(jobs.get(waiting))
    cast.run(jobs.get_attempts(props["ended"]))
    cast.run(jobs.wait(waiting))
    assert cast.run(jobs.cancel(waiting, "me", None)).found_in == "approved"
    assert cast.run(jobs.cancel(props["running"], "me", None)).found_in == "running"
    for keyed in props["keyed"]:
        assert cast.run(jobs.cancel(keyed, "me", None)).found_in == "approved"
    assert cast.run(jobs.cancel(props["ended"], "me", None)).found_in == "completed"
    cast.run(notify.wake("wake *"))


def prepare_approver(cast: Cast) -> list[UUID]:
    prepare_gates(cast)
    kinds: list[dict[str, Any]] = [{}, {"delay": 60.0}, {"unique_key": "k"}]
    jobs = [cast.submit("gated", created_by="me", **more) for more in kinds]
    return [*jobs, cast.submit("gated", created_by="schedule:gone")]


def play_approver(cast: Cast, props: list[UUID]) -> None:
    read_migrations(cast)
    due, later, refused, scheduled = props
    cast.conn.execute("select id, status from laneway.jobs_view")
    cast.run(jobs.listing(JobFilter(status=Status.AWAITING_APPROVAL, max_cost=5, unit="EUR")))
    wanted = JobFilter(status=Status.PENDING, job_type="costly", q="x", within=REACH)
    cast.run(jobs.listing(wanted))
    cast.run(jobs.awaiting(JobFilter(q="x", max_cost=5, within=REACH)))
    cast.run(jobs.get(due))
    cast.run(jobs.get_attempts(due))
    seal = cast.run(approvals.sealed(due)).seal
    assert cast.run(approvals.approve(due, "you", None, seal)).refusal is None
    assert cast.run(approvals.approve(due, "you", None, seal)).found_in == "approved"
    assert cast.run(approvals.approve(later, "you", None, None)).refusal is None
    assert cast.run(approvals.approve(scheduled, "you", None, None)).refusal == "two_person"
    assert cast.run(approvals.reject(refused, "you", "no")).refusal is None
    cast.run(jobs.listing(JobFilter(status=Status.CANCELLED, workspace="elsewhere")))
    assert len(cast.run(approvals.decisions(refused))) == 1
    cast.run(audit.record("you", "job.rejected", "job", str(refused)))
    cast.run(notify.wake("wake *"))


def play_reader(cast: Cast, props: dict[str, Any]) -> None:
    play_earlier_reader(cast)
    read_migrations(cast)
    play_older_names(cast, "reader")
    cast.conn.execute("select id, lane, status from laneway.jobs_view")
    cast.run(explain.facts(props["limited"]))
    cast.run(explain.own_ahead(props["limited"], "ann"))
    for status in (None, *Status):
        wanted = JobFilter(
            status=status, job_type="a", lane="x", q="x", max_cost=1, unit="EUR", within=REACH
        )
        for find in (jobs.listing, jobs.matching, jobs.count, jobs.awaiting):
            cast.run(find(wanted, limit=1))
    cast.run(jobs.listing(JobFilter(within=OWN)))
    cast.run(jobs.listing(JobFilter(status=Status.CANCELLED, workspace="elsewhere")))
    cast.run(jobs.newest())
    cast.run(approvals.decisions(props["running"]))
    cast.run(approvals.sealed(props["running"]))
    for read in (jobs.get, jobs.get_attempts, jobs.wait, explain.facts):
        cast.run(read(props["running"]))
    for lookup in (lanes.read, lanes.read_gate, lanes.measure, lanes.active, workers.listing):
        cast.run(lookup())
    cast.run(workers.published(["greet"]))
    cast.run(health.count_lapsed())
    cast.run(health.find_unhandled(most=9))
    cast.run(limits.read(10))
    cast.run(history.listing(["lane"]))
    cast.run(freeze.frozen())
    cast.run(freeze.progress(["interactive"], 5))
    cast.run(schedules.read())
    cast.run(schedules.slots("nightly", 5))
    cast.run(
        stats.count_ends(window_s=60, bucket_s=60, lanes=["x"], job_type="a", bound=10, points=10)
    )
    cast.run(stats.count_failures(window_s=60, lanes=["x"], job_type=None, bound=10, limit=10))
    cast.run(jobs.count_states(JobFilter(job_type="a", lane="x", within=REACH), bound=10))
    cast.run(lanes.measure_lane("interactive"))
    cast.run(job_types.listing(["x"], limit=10))
    cast.run(job_types.publishers(limit=10))
    cast.run(health.measure_tables())
    cast.run(migrate.read_status())


def prepare_control(cast: Cast) -> None:
    cast.conn.execute(
        "insert into laneway.schedules (name, job_type, cron) values ('nightly', 't', '0 3 * * *')"
    )
    cast.conn.execute("update laneway.schedules set cron = '0 4 * * *' where name = 'nightly'")
    cast.conn.execute(
        "insert into laneway.schedules (name, job_type, cron) values ('broken', 't', '0 3 * * *')"
    )
    spoil = "update laneway.schedules set workspace = '' where name = 'broken'"
    cast.conn.execute(PAST_CHECKS.format(spoil).encode())


def play_control(cast: Cast) -> None:
    def undo(kind: str, name: str, to: int | None = None) -> None:
        rolled = cast.run(history.roll_back(kind, name, to, "me"))
        assert rolled.answer == "done"
        assert rolled.id is not None
        cast.run(history.workspace_of(rolled.id))

    assert cast.run(limits.create(Limit("gpu"), "me")) is not None
    assert cast.run(limits.tune("gpu", {"max_concurrent": 2}, "me")) is not None
    undo("limit", "gpu")
    assert cast.run(limits.delete("gpu", "me")).is_gone
    undo("limit", "gpu")
    undo("limit", "gpu")
    cast.run(workers.lock(cast.worker_id))
    cast.run(workers.drain(cast.worker_id, "me", drained=True))
    cast.run(lanes.create(Lane("gone"), "me"))
    undo("lane", "gone")
    undo("lane", "gone")
    assert cast.run(freeze.freeze(["gone"], "me")) == ["gone"]
    assert cast.run(freeze.freeze(["gone"], "me")) == ["gone"]
    assert cast.run(freeze.thaw(None, "me")) == [("gone", True, True)]
    undo("lane", "gone")
    undo("schedule", "nightly")
    undo("schedule", "nightly", 0)
    undo("schedule", "nightly")


def play_schedules(cast: Cast) -> None:
    assert cast.run(schedules.change("hourly", {"cron": "1 * * * *"}, "me", DEFAULT_LIMITS))
    cast.run(schedules.scopes())
    assert cast.run(schedules.run_now("hourly", "me", check=False))
    cast.run(schedules.run_now("broken", "me", check=False))
    assert cast.run(schedules.run_now("full", "me", check=True))
    assert cast.run(schedules.delete("hourly", "me"))


def prepare_server(cast: Cast) -> dict[str, Any]:
    prepare_worker(cast)
    prepare_control(cast)
    cast.publish("d", max_age_s=3600.0)
    gated = [cast.submit("gated", created_by="me", unique_key=key) for key in "abc"]
    gated.append(cast.submit("gated", created_by="schedule:gone"))
    waiting = cast.submit("c")
    return {
        **prepare_client(cast), "gated": gated, "waiting": waiting, "own": prepare_handler(cast),
        "failed": cast.failed("d", unique_key="f"), "old": cast.completed("e"),
    }  # fmt: skip


def play_requests(cast: Cast) -> None:
    who = uuid4()
    answer = idempotency.KeptResponse(b"digest", 200, "{}", None)
    assert cast.run(idempotency.lock(who, "k"))
    for _ in range(2):
        cast.run(idempotency.save(who, "k", answer))
    assert cast.run(idempotency.read(who, "k")) == answer
    cast.run(idempotency.wait_for_lock(who, "k"))
    cast.run(idempotency.delete_unfinished(who, "k"))
    run = cast.run(bulk.begin(uuid4(), who, "me", "cancel"))
    cast.run(bulk.report(run.id, "done", 1, {}))
    assert cast.run(bulk.read(run.id)).state == "done"
    assert cast.run(job_types.forget_publisher("app", None)) == []
    new = NewJob(id=new_job_id(), job_type="greet")
    play_earlier_server(cast)
    quota = quotas.Quota(who, USUAL)
    mine = Actor("me", principal_id=who)
    assert [job.id for job in cast.run(grouped_submit.submit([(new, mine, quota)]))] == [new.id]
    cast.run(quotas.check(quota, [quotas.RequestedJob("default", "greet", "k")]))
    cast.run(quotas.charge(quota, [new.id]))
    assert cast.run(quotas.sweep(who)) == 0


def play_streams(cast: Cast, job_id: UUID) -> None:
    seq = cast.run(events.numbers([job_id]))[job_id]
    start = cast.run(events.snapshot())
    cast.run(events.open_watches([seq, 0], 60.0))
    cast.run(events.reconcile([seq, 0]))
    assert cast.run(events.renew_watches([seq], 90.0)) == {seq}
    cast.run(events.can_resume([seq], start))
    cast.run(events.between(start))
    assert cast.run(events.of_job(seq, None)).events
    assert cast.run(events.jobs([seq])).keys() == {seq}
    assert cast.run(events.jobs([seq], values=False)).keys() == {seq}
    assert cast.run(access.review([b"x"], 60.0)) == {}


def play_server(cast: Cast, props: dict[str, Any]) -> None:
    play_others(cast, props)
    play_own(cast, props)


def play_others(cast: Cast, props: dict[str, Any]) -> None:
    """The work that the server shares with other roles, with only their grants."""
    play_reader(cast, props)
    play_client(cast, props)
    play_handler(cast, props["own"])
    cast.run(leases.settle([Verdict(props["own"][0], "confirm")]))
    play_approver(cast, props["gated"])
    play_worker(cast, None)


def play_own(cast: Cast, props: dict[str, Any]) -> None:
    play_older_names(cast, "server")
    play_access(cast)
    play_requests(cast)
    play_streams(cast, props["running"])
    play_remote(cast)
    assert cast.run(jobs.retry(props["gated"][2])).found_in == "cancelled"
    assert cast.run(jobs.reprioritize(props["waiting"], 5)).found_in == "approved"
    assert cast.run(jobs.reprioritize(props["old"], 5)).found_in == "completed"
    assert cast.run(jobs.retry(props["failed"])).found_in == "failed"
    assert cast.run(jobs.retry(props["failed"])).found_in == "approved"
    assert cast.run(jobs.delete(props["old"])) == props["old"]
    cast.run(lanes.tune("system", {"max_slots": 3}, "me"))
    cast.run(lanes.move_type("system", "c", "me"))
    play_control(cast)
    play_schedules(cast)
    assert cast.run(audit.listing(AuditFilter(actor="me"))).entries
    cast.run(history.transaction_changes("limit"))
    cast.run(lanes.pause(True, "me"))
    cast.run(health.read_server())
    cast.run(health.oldest_snapshot())
    cast.run(health.find_blockers())
    cast.run(health.read_rights())
    cast.run(health.current_role())
    cast.run(health.settings_named(["jit"]))
    cast.run(health.find_lost(newest=9, places=2, each=2))
    cast.run(health.look_for_lost(after=0, look=9))
    cast.run(health.end_lost([1]))
    # As servers of earlier versions call it.
    cast.conn.execute("select laneway.end_lost(1)")
    cast.run(health.recount_usage())
    assert cast.run(row_security.applies())
    cast.run(row_security.restrict(["nowhere"]))
    assert cast.run(jobs.count(JobFilter(), limit=9)).matched == 0


def read_migrations(cast: Cast) -> None:
    cast.conn.execute("select number from laneway.migrations")


PLAYS: dict[str, tuple[Callable[[Cast], Any], Callable[[Cast, Any], None]]] = {
    "worker": (prepare_worker, play_worker),
    "handler": (prepare_handler, play_handler),
    "client": (prepare_client, play_client),
    "approver": (prepare_approver, play_approver),
    "reader": (prepare_client, play_reader),
    "server": (prepare_server, play_server),
}
