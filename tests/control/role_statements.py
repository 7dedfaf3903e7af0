"""Every statement of each database role, at least once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg

from laneway.client import Client, Given
from laneway.config.settings import Settings
from laneway.domain.actor import Actor
from laneway.domain.approval import Analysis, Approval, analysis_of
from laneway.domain.audit import AuditFilter
from laneway.domain.bounds import USUAL
from laneway.domain.claim import Claim
from laneway.domain.filter import JobFilter
from laneway.domain.freeze import Thawed
from laneway.domain.job import NewJob, new_job_id
from laneway.domain.job_id import IdPrefix
from laneway.domain.lane import Lane
from laneway.domain.lane_setup import state_of
from laneway.domain.limit import Limit
from laneway.domain.payload import DEFAULT_LIMITS
from laneway.domain.permissions import Reach, Term
from laneway.domain.schedule import Schedule
from laneway.domain.states import Status
from laneway.errors import DatabaseUnavailable
from laneway.store import (
    access,
    approvals,
    audit,
    brief_waits,
    bulk,
    call_limits,
    caller_transaction,
    events,
    explain,
    flows,
    freeze,
    grouped_submit,
    handler_waits,
    health,
    history,
    idempotency,
    job_ids,
    job_places,
    job_types,
    jobs,
    lanes,
    leases,
    limits,
    migrate,
    notify,
    parents,
    quotas,
    retention,
    row_security,
    schedules,
    sent_events,
    stats,
    steps,
    waits,
    workers,
)
from laneway.store.database import run_sync
from laneway.store.grants import Privilege, expand, privileges
from laneway.store.leases import LogEntry, Report, Verdict
from laneway.store.older_names import OLDER_NAMES
from laneway.store.retention import LeaderTerm, WalkPosition
from laneway.store.rights import STATEMENTS
from laneway.store.schedules import SlotEntry
from laneway.store.statement import Statement
from tests.control import flow_statements
from tests.control.access_statements import run_access
from tests.control.hook_statements import publish_hooks, read_target, run_webhooks
from tests.control.limit_statements import prepare_turns, run_holds, run_turns
from tests.control.remote_statements import run_remote
from tests.control.wait_statements import run_waits, suspend
from tests.support.job_factory import JobFactory
from tests.support.store_client import PAST_CHECKS

ROLE = "laneway_test_role"
OWN = Reach((Term(owner="me"),))
REACH = Reach((*OWN.terms, Term(workspace="ours")))


class RoleSession(JobFactory):
    """A job factory that runs as another role and records its statements.

    Each statement is first tried without each of the `unproven` privileges that it declares.
    """

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        super().__init__(conn)
        self.ran: set[str] = set()
        self.unproven: set[Privilege] = set()

    def run(self, statement: Statement[Any]) -> Any:
        if self.unproven:
            declared = self.unproven.intersection(expand(STATEMENTS[statement.name]))
            self.unproven -= {
                each
                for each in declared
                if self.is_denied(each, lambda: run_sync(self.conn, statement))
            }
        return super().run(statement)

    def is_denied(self, privilege: Privilege, work: Callable[[], object]) -> bool:
        """Whether the work needs the privilege; its effects are rolled back."""
        with self.conn.transaction(force_rollback=True):
            self.conn.execute("reset role")
            self.conn.execute(f"revoke {grant_text(privilege)} from {ROLE}".encode())
            self.conn.execute(f"set local role {ROLE}".encode())
            try:
                work()
            except (DatabaseUnavailable, psycopg.errors.InsufficientPrivilege) as error:
                assert "permission denied" in str(error)  # noqa: PT017 - in a loop over grants
                return True
        return False


def grant_text(privilege: Privilege) -> str:
    kind = "" if privilege.kind == "table" else privilege.kind
    return f"{privilege.right} on {kind} laneway.{privilege.name}"


def prepare_worker(session: RoleSession) -> None:
    for _ in range(5):
        session.submit("ingestion", unique_key=str(uuid4()))
    session.submit("reading")
    session.submit("polarity", delay=60.0)
    session.conn.execute("update laneway.delayed set run_at = clock_timestamp() - interval '1 s'")
    session.conn.execute("update laneway.worker_lanes set max_slots = 9 where name = 'interactive'")
    session.conn.execute(
        "insert into laneway.limits (name, rate_count, rate_period_s) values ('rated', 9, 1)"
    )
    prepare_leader(session)
    prepare_gates(session)
    prepare_turns(session)
    flow_statements.prepare_edges(session.conn, session.submit("napping"))
    for _ in range(3):
        session.submit("same", concurrency_key="same")
    session.run(caller_transaction.finish(session.running("apart"), "1", 0.1))


def run_keys(session: RoleSession) -> None:
    """Of three jobs with one key one runs; the claim parks one, a search finds the other."""
    (claim,) = session.claim("same", room=2)
    assert session.run(leases.park(["same"], 10)) == 1
    found = session.conn.execute(
        "select f.seq, j.id, f.attempt from laneway.self_finished f"
        " join laneway.jobs j on j.seq = f.seq where j.job_type = 'apart'"
    ).fetchone()
    assert found is not None
    both = [Verdict(claim, "finish"), Verdict(Claim(*found), "confirm")]
    assert "promoted" in {answer.answer for answer in session.run(leases.settle(both))}


def prepare_gates(session: RoleSession) -> None:
    """One type with an analysis, one with an approval, one whose policy comes after the submit."""
    session.submit("early")
    session.publish("early", approval=Approval(), has_analysis=True)
    cheap = Approval(below_cost=5, currency="EUR")
    session.publish("costly", approval=cheap, has_analysis=True, max_age_s=3600.0)
    session.publish("gated", approval=Approval(two_person=True))
    for _ in range(2):
        session.submit("costly")


def run_gates(session: RoleSession) -> None:
    """From an analysis to a run, and back to the next analysis."""
    for cost in (1, 9):
        (claim,) = session.claim(analysis_of("costly"))
        analysis = json.dumps(Analysis(cost=cost, currency="EUR").to_dict())
        for _ in range(2):
            session.settle(claim, "analyzed", result=analysis)
    (sealed,) = session.claim("costly")
    session.settle(sealed)
    assert session.claim("early") == []


def run_earlier_worker(session: RoleSession) -> None:
    """Clear counters as workers of the previous version do."""
    for table in ("slot_usage", "limit_usage"):
        query = f"delete from laneway.{table} where worker_id = %s and running = 0"
        session.conn.execute(query.encode(), [uuid4()])


def run_earlier_server(session: RoleSession) -> None:
    """Store a batch as servers of the previous version do."""
    row = session.conn.execute("select nextval('laneway.jobs_seq_seq')").fetchone()
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
        session.conn.execute(text.encode(), {"n": row[0]})


def run_earlier_reader(session: RoleSession) -> None:
    """Read usage and jobs as the previous version does."""
    session.conn.execute("select from laneway.jobs_as_text limit 0")
    for table in ("slot_usage", "limit_usage"):
        session.conn.execute(f"select sum(running) from laneway.{table}".encode())


def run_older_names(session: RoleSession, role: str) -> None:
    """Call functions by their older names, as landed versions do."""
    granted = {p.name for p in privileges(role) if p.kind == "function"}
    for name in OLDER_NAMES.keys() & granted:
        row = session.conn.execute(
            "select pronargs from pg_proc where oid = to_regproc('laneway.' || %s::text)", [name]
        ).fetchone()
        assert row is not None
        # PostgreSQL checks the right to call it before the condition.
        nulls = ", ".join(["null"] * row[0])
        session.conn.execute(f"select laneway.{name}({nulls}) where false".encode())


def run_worker(session: RoleSession, _: None) -> None:
    run_earlier_worker(session)
    run_older_names(session, "worker")
    read_migrations(session)
    run_gates(session)
    run_turns(session)
    session.run(lanes.create(Lane("video"), "worker"))
    session.run(lanes.assign_types([("audio", "mix")], "worker"))
    assert session.run(limits.find(["codec"])) == set()
    session.run(limits.names())
    assert session.run(limits.create(Limit("codec"), "worker")) is not None
    assert len(session.run(limits.get(["codec"]))) == 1
    session.publish("encode")
    assert session.run(workers.conflicts(["encode"])) == []
    assert session.run(job_types.publishers(["encode"], stale_only=True, limit=1)) == []
    session.run(job_types.touch_publishers([("encode", "app")]))
    publish_hooks(session)
    read_target(session)
    session.register(("ingestion",))
    session.run(workers.touch(session.worker_id))
    promoted = session.run(lanes.peek(["ingestion", "polarity"])).promoted
    assert sorted(promoted) == ["napping", "polarity"]
    suspend(session, *session.claim("reading"))
    assert session.run(lanes.find_below_floors([("ingestion", 0, 0)])) == set()
    assert session.run(lanes.find_horizon()) > 0
    done, failing, silent, held, snoozed = session.claim("ingestion", room=5, origins=True)
    session.conn.execute("update laneway.lease set attempt = 200 where seq = %s", [snoozed.seq])
    assert session.run(leases.settle([Verdict(snoozed._replace(attempt=200), "snooze")]))
    assert session.run(leases.heartbeat([done.seq], [1])) == []
    lines = [LogEntry(done, 1, "INFO", "hello", 0.0)]
    assert session.run(leases.report([Report(done, done=1.0)], lines)) == []
    fenced = Verdict(done._replace(attempt=9), "finish")
    answers = session.run(
        leases.settle([Verdict(done, "finish", "1"), Verdict(failing, "fail", delay_s=0.0), fenced])
    )
    assert sorted(answer.answer for answer in answers) == ["accepted", "fenced"]
    run_calls(session, held)
    run_keys(session)
    run_scheduler(session)
    run_leader(session, session.run(leases.run_watchdog(session.worker_id, 10.0)).epoch)
    # Its worker has renewed no other lease since: the job was not lost alone.
    session.conn.execute(
        "update laneway.lease set lease_seconds = 3600, lease_until ="
        " clock_timestamp() + case when seq = %s then -1 else 60 end * interval '1 s'",
        [silent.seq],
    )
    assert session.run(leases.run_watchdog(session.worker_id, 10.0)).reclaimed == 1
    assert (
        session.run(leases.fail_worker(session.worker_id, "gone", hung=True, culprit=held.seq)) > 0
    )
    session.run(leases.resign(session.worker_id))
    session.run(workers.stop(session.worker_id))
    session.run(workers.sweep(session.worker_id))
    session.run(notify.wake("wake *"))


def prepare_leader(session: RoleSession) -> None:
    """One job for each task of the leader."""
    late, asks, waits = (session.submit(t, concurrency_key="k") for t in ("late", "asks", "waits"))
    finished = session.running("finished", unique_key="own")
    session.run(caller_transaction.finish(finished, "1", 0.1))
    session.conn.execute(
        "insert into laneway.deadlines select seq, clock_timestamp() from laneway.jobs"
        " where id = %s on conflict do nothing",
        [late],
    )
    session.conn.execute(
        "with w as (delete from laneway.ready r using laneway.jobs j where j.id = %s"
        " and r.seq = j.seq returning r.seq, r.rank)"
        " insert into laneway.awaiting (seq, job_type, workspace, rank, expires_at)"
        " select seq, 'asks', 'default', rank, clock_timestamp() from w",
        [asks],
    )
    session.conn.execute(
        "with w as (delete from laneway.ready r using laneway.jobs j where j.id = %s"
        " and r.seq = j.seq returning r.*) insert into laneway.key_waiters"
        " select seq, 'default', 'k', rank, job_type, attempt, retries, false, ready_at from w",
        [waits],
    )


def run_leader(session: RoleSession, epoch: int) -> None:
    term = LeaderTerm(session.worker_id, epoch)
    assert session.run(retention.expire_overaged(term)).ended == 1
    for duty in (retention.expire_approvals, retention.release_self_finished):
        assert session.run(duty(term)) == 1, duty
    # Two keys without a holder: the one of run_keys, and the one that was parked manually.
    assert session.run(retention.sweep_keys(term)) == 2
    session.run(retention.recount_usage(term))
    flow_statements.run_edges(session, term)
    session.run(retention.prune_events(term, 60.0))
    session.run(retention.prune_records(term))
    session.run(retention.delete_expired(term, WalkPosition()))


def run_calls(session: RoleSession, claim: Claim) -> None:
    assert session.run(steps.save(claim, "one", "1", 0.1)).answer == "kept"
    assert session.run(steps.read(claim)) == {"one": "1"}
    assert session.run(call_limits.acquire(claim, {"rated": 1})).answer == "granted"
    assert session.run(call_limits.release(claim, {"rated": 0})) == "given"
    run_waits(session, claim)


def run_scheduler(session: RoleSession) -> None:
    holder, long_ago = session.worker_id, datetime(2026, 1, 1, tzinfo=UTC)
    epoch = session.run(leases.run_watchdog(holder, 10.0)).epoch
    for name, check in (("hourly", None), ("full", "is_full")):
        given = {"name": name, "job_type": "t", "cron": "0 * * * *", "check_name": check}
        assert session.run(schedules.create(Schedule.of(given), "worker", DEFAULT_LIMITS))
    for due in session.run(schedules.find_due(holder, ["is_full"])).due:
        session.run(schedules.plan(due.name, due.seen, long_ago))
    found = {due.name: due for due in session.run(schedules.find_due(holder, ["is_full"])).due}
    checked, plain = found["full"], found["hourly"]
    session.run(schedules.find_ahead())
    assert session.run(schedules.scopes())
    session.run(schedules.settings(["nightly"]))
    session.run(schedules.replan(plain, long_ago))
    entry = SlotEntry(long_ago, "submitted")
    assert session.run(schedules.fire(plain, [entry], long_ago, holder, epoch)).taken == 1
    assert session.run(schedules.begin_check(checked, holder, 60.0))
    session.run(schedules.release_checks(holder))
    assert session.run(schedules.stop("full", checked.seen, "no"))


def prepare_handler(session: RoleSession) -> list[Claim]:
    return [session.running("a", unique_key="u"), session.running("b")]


def run_handler(session: RoleSession, data: list[Claim]) -> None:
    read_migrations(session)
    run_older_names(session, "handler")
    finished, guarded = data
    held = session.run(caller_transaction.guard(guarded))
    assert held.answer == "held"
    assert session.run(caller_transaction.is_still_in(held.xid))
    assert session.run(caller_transaction.finish(finished, "1", 0.1)) == "finished"


def prepare_client(session: RoleSession) -> dict[str, Any]:
    if session.run(workers.published(["costly"])) == {}:
        prepare_gates(session)
    session.conn.execute(
        "insert into laneway.limits (name, rate_count, rate_period_s, scope)"
        " values ('near', 9, 1, 'host') on conflict do nothing"
    )
    session.publish("limited", limits=("near",))
    _, handed, waiting = (session.submit("keyed", concurrency_key="one") for _ in range(3))
    session.settle(session.claim("keyed", room=3)[0])
    limited, running = session.submit("limited"), session.running("a")
    assert session.run(waits.note(running, limited))
    return {
        "keyed": [handed, waiting],
        "limited": limited,
        "running": running.job_id,
        "ended": session.completed("b"),
    }


def run_client(session: RoleSession, data: dict[str, Any]) -> None:
    session.conn.execute("select from laneway.jobs_as_text limit 0")
    flow_statements.run_flows(session)
    session.run(workers.published_names())
    read_migrations(session)
    waiting = session.submit(unique_key="k")
    assert session.submit(unique_key="k") == waiting
    session.conn.execute("select laneway.submit('greet', '{\"by\": \"SQL\"}')")
    client = Client(None, Settings.load())  # type: ignore[arg-type]
    batch: list[Given] = [
        ("bulk", {}, {"unique_key": "k"}),
        ("bulk", {}, {"delay": 60}),
        ("bulk", {}),
    ]
    for _ in range(2):
        made = asyncio.run(client.submit_many(batch, conn=session.conn))
    assert [job.duplicate for job in made] == [True, False, False]
    gated: list[Given] = [("costly", {}), ("gated", {}, {"created_by": "me"})]
    made = asyncio.run(client.submit_many(gated, conn=session.conn))
    assert [job.status for job in made] == ["pending", "awaiting_approval"]
    session.submit("unheard_of", needs="approval")
    for job in made:
        assert session.run(jobs.cancel(job.id, "me", None)).found_in == job.status
    session.run(audit.record("me", "job.cancelled", "job", str(waiting)))
    run_holds(session)
    session.run(jobs.get(waiting))
    session.run(jobs.get_attempts(data["ended"]))
    session.run(jobs.wait(waiting))
    assert session.run(waits.note(Claim(0, data["running"], 1), waiting))
    session.run(sent_events.send("go", "k", "1", workspace="default"))
    session.run(sent_events.send_all([sent_events.NewEvent("go", "k", "1", "default", None, 60)]))
    assert session.run(jobs.cancel(waiting, "me", None)).found_in == "approved"
    assert session.run(jobs.cancel(data["running"], "me", None)).found_in == "running"
    for keyed in data["keyed"]:
        assert session.run(jobs.cancel(keyed, "me", None)).found_in == "approved"
    assert session.run(jobs.cancel(data["ended"], "me", None)).found_in == "completed"
    session.run(notify.wake("wake *"))


def find_by_prefix(session: RoleSession, job_id: UUID) -> None:
    for within in (None, REACH):
        session.run(job_ids.find([IdPrefix(job_id.hex[:31])], within=within))


def prepare_approver(session: RoleSession) -> list[UUID]:
    prepare_gates(session)
    kinds: list[dict[str, Any]] = [{}, {"delay": 60.0}, {"unique_key": "k"}]
    jobs = [session.submit("gated", created_by="me", **more) for more in kinds]
    return [*jobs, session.submit("gated", created_by="schedule:gone")]


def run_approver(session: RoleSession, data: list[UUID]) -> None:
    read_migrations(session)
    due, later, refused, scheduled = data
    session.conn.execute("select from laneway.jobs_as_text limit 0")
    session.conn.execute("select id, status from laneway.jobs_view")
    session.run(jobs.listing(JobFilter(status=Status.AWAITING_APPROVAL, max_cost=5, unit="EUR")))
    wanted = JobFilter(status=Status.PENDING, job_type="costly", q="x", within=REACH)
    session.run(jobs.listing(wanted))
    session.run(jobs.awaiting(JobFilter(q="x", max_cost=5, within=REACH)))
    session.run(jobs.get(due))
    find_by_prefix(session, due)
    session.run(steps.listing(due))
    session.run(handler_waits.listing(due))
    session.run(flows.edges(due))
    session.run(jobs.get_attempts(due))
    seal = session.run(approvals.sealed(due)).seal
    assert session.run(approvals.approve(due, "you", None, seal)).refusal is None
    assert session.run(approvals.approve(due, "you", None, seal)).found_in == "approved"
    assert session.run(approvals.approve(later, "you", None, None)).refusal is None
    assert session.run(approvals.approve(scheduled, "you", None, None)).refusal == "two_person"
    assert session.run(approvals.reject(refused, "you", "no")).refusal is None
    session.run(jobs.listing(JobFilter(status=Status.CANCELLED, workspace="elsewhere")))
    assert len(session.run(approvals.decisions(refused))) == 1
    session.run(audit.record("you", "job.rejected", "job", str(refused)))
    session.run(notify.wake("wake *"))


def run_reader(session: RoleSession, data: dict[str, Any]) -> None:
    run_earlier_reader(session)
    read_migrations(session)
    run_older_names(session, "reader")
    session.conn.execute("select id, lane, status from laneway.jobs_view")
    session.run(explain.facts(data["limited"]))
    session.run(explain.own_ahead(data["limited"], "ann"))
    session.run(waits.graph(data["limited"]))
    session.run(parents.read(data["limited"]))
    flow_statements.read_flows(session)
    for status in (None, *Status):
        wanted = JobFilter(
            status=status, job_type="a", lane="x", q="x", max_cost=1, unit="EUR", within=REACH
        )
        for find in (jobs.listing, jobs.matching, jobs.count, jobs.awaiting):
            session.run(find(wanted, limit=1))
    session.run(jobs.listing(JobFilter(within=OWN)))
    session.run(jobs.listing(JobFilter(error_type="E", within=OWN)))
    session.run(jobs.listing(JobFilter(was_approved=True)))
    session.run(jobs.listing(JobFilter(ended_within=60)))
    session.run(jobs.listing(JobFilter(status=Status.CANCELLED, workspace="elsewhere")))
    session.run(jobs.newest())
    find_by_prefix(session, data["running"])
    session.run(steps.listing(data["running"]))
    session.run(handler_waits.listing(data["running"]))
    session.run(approvals.decisions(data["running"]))
    session.run(approvals.sealed(data["running"]))
    for read in (jobs.get, jobs.get_attempts, jobs.wait, explain.facts):
        session.run(read(data["running"]))
    for lookup in (lanes.read, lanes.read_gate, lanes.measure, lanes.active, workers.listing):
        session.run(lookup())
    session.run(workers.published(["greet"]))
    session.run(workers.published_names())
    session.run(health.count_lapsed())
    session.run(health.find_unhandled(most=9))
    session.run(limits.read(10))
    session.run(limits.holding_jobs(["openai"]))
    session.run(history.listing(["lane"]))
    session.run(freeze.frozen())
    session.run(freeze.progress(["interactive"], 5))
    session.run(schedules.read())
    session.run(schedules.slots("nightly", 5))
    session.run(
        stats.count_ends(window_s=60, bucket_s=60, lanes=["x"], job_type="a", bound=10, points=10)
    )
    session.run(stats.count_failures(window_s=60, lanes=["x"], job_type=None, bound=10, limit=10))
    session.run(jobs.count_states(JobFilter(job_type="a", lane="x", within=REACH), bound=10))
    session.run(lanes.measure_lane("interactive"))
    session.run(job_types.listing(["x"], limit=10))
    session.run(job_types.publishers(limit=10))
    session.run(health.measure_tables())
    session.run(migrate.read_status())


def prepare_control(session: RoleSession) -> None:
    session.conn.execute(
        "insert into laneway.schedules (name, job_type, cron) values ('nightly', 't', '0 3 * * *')"
    )
    session.conn.execute("update laneway.schedules set cron = '0 4 * * *' where name = 'nightly'")
    session.conn.execute(
        "insert into laneway.schedules (name, job_type, cron) values ('broken', 't', '0 3 * * *')"
    )
    spoil = "update laneway.schedules set workspace = '' where name = 'broken'"
    session.conn.execute(PAST_CHECKS.format(spoil).encode())


def run_control(session: RoleSession) -> None:
    def undo(kind: str, name: str, to: int | None = None) -> None:
        rolled = session.run(history.roll_back(kind, name, to, "me"))
        assert rolled.answer == "done"
        assert rolled.id is not None
        session.run(history.workspace_of(rolled.id))

    assert session.run(limits.create(Limit("gpu"), "me")) is not None
    assert session.run(limits.tune("gpu", {"max_concurrent": 2}, "me")) is not None
    undo("limit", "gpu")
    assert session.run(limits.delete("gpu", "me")).is_gone
    undo("limit", "gpu")
    undo("limit", "gpu")
    session.run(workers.lock(session.worker_id))
    session.run(workers.drain(session.worker_id, "me", drained=True))
    session.run(lanes.create(Lane("gone"), "me"))
    undo("lane", "gone")
    undo("lane", "gone")
    assert session.run(freeze.freeze(["gone"], "me")) == ["gone"]
    assert session.run(freeze.freeze(["gone"], "me")) == ["gone"]
    assert session.run(freeze.thaw(None, "me")) == [Thawed("gone", True, True)]
    undo("lane", "gone")
    session.run(lanes.lock())
    session.run(lanes.count_running())
    session.run(lanes.find_waiting(["greet"]))
    session.run(lanes.create(Lane("spare"), "me"))
    session.run(lanes.replace_all([state_of(Lane("loaded"))], ["spare"], "me"))
    undo("schedule", "nightly")
    undo("schedule", "nightly", 0)
    undo("schedule", "nightly")


def run_schedules(session: RoleSession) -> None:
    assert session.run(schedules.change("hourly", {"cron": "1 * * * *"}, "me", DEFAULT_LIMITS))
    session.run(schedules.scopes())
    assert session.run(schedules.run_now("hourly", "me", check=False))
    session.run(schedules.run_now("broken", "me", check=False))
    assert session.run(schedules.run_now("full", "me", check=True))
    assert session.run(schedules.delete("hourly", "me"))


def prepare_server(session: RoleSession) -> dict[str, Any]:
    prepare_worker(session)
    prepare_control(session)
    session.publish("d", max_age_s=3600.0)
    gated = [session.submit("gated", created_by="me", unique_key=key) for key in "abc"]
    gated.append(session.submit("gated", created_by="schedule:gone"))
    waiting = session.submit("c")
    return {
        **prepare_client(session),
        "gated": gated,
        "waiting": waiting,
        "own": prepare_handler(session),
        "failed": session.failed("d", unique_key="f"),
        "old": session.completed("e"),
        "flow": flow_statements.prepare_flow(session, session.conn),
    }


def run_requests(session: RoleSession) -> None:
    who = uuid4()
    answer = idempotency.KeptResponse(b"digest", 200, "{}", None)
    assert session.run(idempotency.lock(who, "k"))
    for _ in range(2):
        session.run(idempotency.save(who, "k", answer))
    assert session.run(idempotency.read(who, "k")) == answer
    session.run(idempotency.wait_for_lock(who, "k"))
    session.run(idempotency.delete_unfinished(who, "k"))
    run = session.run(bulk.begin(uuid4(), who, "me", "cancel"))
    session.run(bulk.report(run.id, "done", 1, {}))
    assert session.run(bulk.read(run.id)).state == "done"
    assert session.run(job_types.forget_publisher("app", None)) == []
    new = NewJob(id=new_job_id(), job_type="greet")
    run_earlier_server(session)
    quota = quotas.Quota(who, USUAL)
    mine = Actor("me", principal_id=who)
    assert [job.id for job in session.run(grouped_submit.submit([(new, mine, quota)]))] == [new.id]
    session.run(quotas.check(quota, [quotas.RequestedJob("default", "greet", "k")]))
    session.run(quotas.charge(quota, [new.id]))
    assert session.run(quotas.sweep(who)) == 0


def run_streams(session: RoleSession, job_id: UUID) -> None:
    seq = session.run(events.numbers([job_id]))[job_id]
    start = session.run(events.position())[0]
    session.run(events.open_watches([seq, 0], 60.0))
    session.run(events.reconcile([seq, 0]))
    assert session.run(events.renew_watches([seq], 90.0)) == {seq}
    session.run(events.can_resume([seq], start))
    session.run(events.between(start))
    assert session.run(events.of_job(seq, None)).events
    assert session.run(events.jobs([seq])).keys() == {seq}
    assert session.run(events.jobs([seq], values=False)).keys() == {seq}
    assert session.run(access.review([b"x"], 60.0)) == {}


def run_server(session: RoleSession, data: dict[str, Any]) -> None:
    run_others(session, data)
    run_own(session, data)


def run_others(session: RoleSession, data: dict[str, Any]) -> None:
    """The work that the server shares with other roles, with only their grants."""
    run_reader(session, data)
    run_client(session, data)
    run_handler(session, data["own"])
    session.run(leases.settle([Verdict(data["own"][0], "confirm")]))
    run_approver(session, data["gated"])
    run_worker(session, None)


def run_own(session: RoleSession, data: dict[str, Any]) -> None:
    run_older_names(session, "server")
    run_access(session)
    run_requests(session)
    run_streams(session, data["running"])
    run_remote(session)
    flow_statements.run_verbs_on_flow(session, data["flow"])
    assert session.run(job_places.read([uuid4()])) == {}
    assert session.run(jobs.retry(data["gated"][2])).found_in == "cancelled"
    assert session.run(jobs.reprioritize(data["waiting"], 5)).found_in == "approved"
    assert session.run(jobs.reprioritize(data["old"], 5)).found_in == "completed"
    assert session.run(jobs.retry(data["failed"])).found_in == "failed"
    assert session.run(jobs.retry(data["failed"])).found_in == "approved"
    assert session.run(jobs.run_now(data["waiting"])).found_in == "due"
    assert session.run(jobs.delete(data["old"])) == data["old"]
    session.run(lanes.tune("system", {"max_slots": 3}, "me"))
    session.run(lanes.move_type("system", "c", "me"))
    run_control(session)
    run_webhooks(session)
    run_schedules(session)
    assert session.run(audit.listing(AuditFilter(actor="me"))).entries
    session.run(history.transaction_changes("limit"))
    session.run(lanes.pause(True, "me"))
    session.run(health.read_server())
    session.run(health.oldest_snapshot())
    session.run(health.find_blockers())
    session.run(health.read_rights())
    session.run(health.count_attention(bound=10))
    flow_statements.count_open(session)
    session.run(health.current_role())
    session.run(health.settings_named(["jit"]))
    session.run(health.role_settings(["jit"]))
    session.run(brief_waits.set_lock_timeout(1.0))
    session.run(health.sample_lost(newest=9, places=2, each=2))
    session.run(health.look_for_lost(after=0, scan=9))
    session.run(health.end_lost([1]))
    # As servers of earlier versions call it.
    session.conn.execute("select laneway.end_lost(1)")
    session.run(health.recount_usage())
    session.run(health.find_stuck_waits(look=9))
    session.run(health.find_old_waits(look=9, age_s=9))
    session.run(health.mend_waits(after=0, look=9))
    assert session.run(row_security.applies())
    session.run(row_security.restrict(["nowhere"]))
    assert session.run(jobs.count(JobFilter(), limit=9)).matched == 0


def read_migrations(session: RoleSession) -> None:
    session.conn.execute("select number from laneway.migrations")


ROLE_WORK: dict[str, tuple[Callable[[RoleSession], Any], Callable[[RoleSession, Any], None]]] = {
    "worker": (prepare_worker, run_worker),
    "handler": (prepare_handler, run_handler),
    "client": (prepare_client, run_client),
    "approver": (prepare_approver, run_approver),
    "reader": (prepare_client, run_reader),
    "server": (prepare_server, run_server),
}
