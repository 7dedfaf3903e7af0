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


class RoleFactory(JobFactory):
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


def prepare_worker(factory: RoleFactory) -> None:
    for _ in range(5):
        factory.submit("ingestion", unique_key=str(uuid4()))
    factory.submit("reading")
    factory.submit("polarity", delay=60.0)
    factory.conn.execute("update laneway.delayed set run_at = clock_timestamp() - interval '1 s'")
    factory.conn.execute("update laneway.worker_lanes set max_slots = 9 where name = 'interactive'")
    factory.conn.execute(
        "insert into laneway.limits (name, rate_count, rate_period_s) values ('rated', 9, 1)"
    )
    prepare_leader(factory)
    prepare_gates(factory)
    prepare_turns(factory)
    flow_statements.prepare_edges(factory)
    for _ in range(3):
        factory.submit("same", concurrency_key="same")
    factory.run(caller_transaction.finish(factory.running("apart"), "1", 0.1))


def run_keys(factory: RoleFactory) -> None:
    """Of three jobs with one key one runs; the claim parks one, a search finds the other."""
    (claim,) = factory.claim("same", room=2)
    assert factory.run(leases.park(["same"], 10)) == 1
    found = factory.conn.execute(
        "select f.seq, j.id, f.attempt from laneway.self_finished f"
        " join laneway.jobs j on j.seq = f.seq where j.job_type = 'apart'"
    ).fetchone()
    assert found is not None
    both = [Verdict(claim, "finish"), Verdict(Claim(*found), "confirm")]
    assert "promoted" in {answer.answer for answer in factory.run(leases.settle(both))}


def prepare_gates(factory: RoleFactory) -> None:
    """One type with an analysis, one with an approval, one whose policy comes after the submit."""
    factory.submit("early")
    factory.publish("early", approval=Approval(), has_analysis=True)
    cheap = Approval(below_cost=5, currency="EUR")
    factory.publish("costly", approval=cheap, has_analysis=True, max_age_s=3600.0)
    factory.publish("gated", approval=Approval(two_person=True))
    for _ in range(2):
        factory.submit("costly")


def run_gates(factory: RoleFactory) -> None:
    """From an analysis to a run, and back to the next analysis."""
    for cost in (1, 9):
        (claim,) = factory.claim(analysis_of("costly"))
        analysis = json.dumps(Analysis(cost=cost, currency="EUR").to_dict())
        for _ in range(2):
            factory.settle(claim, "analyzed", result=analysis)
    (sealed,) = factory.claim("costly")
    factory.settle(sealed)
    assert factory.claim("early") == []


def run_earlier_worker(factory: RoleFactory) -> None:
    """Clear counters as workers of the previous version do."""
    for table in ("slot_usage", "limit_usage"):
        query = f"delete from laneway.{table} where worker_id = %s and running = 0"
        factory.conn.execute(query.encode(), [uuid4()])


def run_earlier_server(factory: RoleFactory) -> None:
    """Store a batch as servers of the previous version do."""
    row = factory.conn.execute("select nextval('laneway.jobs_seq_seq')").fetchone()
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
        factory.conn.execute(text.encode(), {"n": row[0]})


def run_earlier_reader(factory: RoleFactory) -> None:
    """Read usage and jobs as the previous version does."""
    factory.conn.execute("select from laneway.jobs_as_text limit 0")
    for table in ("slot_usage", "limit_usage"):
        factory.conn.execute(f"select sum(running) from laneway.{table}".encode())


def run_older_names(factory: RoleFactory, role: str) -> None:
    """Call functions by their older names, as landed versions do."""
    granted = {p.name for p in privileges(role) if p.kind == "function"}
    for name in OLDER_NAMES.keys() & granted:
        row = factory.conn.execute(
            "select pronargs from pg_proc where oid = to_regproc('laneway.' || %s::text)", [name]
        ).fetchone()
        assert row is not None
        # PostgreSQL checks the right to call it before the condition.
        nulls = ", ".join(["null"] * row[0])
        factory.conn.execute(f"select laneway.{name}({nulls}) where false".encode())


def run_worker(factory: RoleFactory, _: None) -> None:
    run_earlier_worker(factory)
    run_older_names(factory, "worker")
    read_migrations(factory)
    run_gates(factory)
    run_turns(factory)
    factory.run(lanes.create(Lane("video"), "worker"))
    factory.run(lanes.assign_types([("audio", "mix")], "worker"))
    assert factory.run(limits.find(["codec"])) == set()
    factory.run(limits.names())
    assert factory.run(limits.create(Limit("codec"), "worker")) is not None
    assert len(factory.run(limits.get(["codec"]))) == 1
    factory.publish("encode")
    assert factory.run(workers.conflicts(["encode"])) == []
    assert factory.run(job_types.publishers(["encode"], stale_only=True, limit=1)) == []
    factory.run(job_types.touch_publishers([("encode", "app")]))
    publish_hooks(factory)
    read_target(factory)
    factory.register(("ingestion",))
    factory.run(workers.touch(factory.worker_id))
    promoted = factory.run(lanes.peek(["ingestion", "polarity"])).promoted
    assert sorted(promoted) == ["napping", "polarity"]
    suspend(factory, *factory.claim("reading"))
    assert factory.run(lanes.find_below_floors([("ingestion", 0, 0)])) == set()
    assert factory.run(lanes.find_horizon()) > 0
    done, failing, silent, held, snoozed = factory.claim("ingestion", room=5, origins=True)
    factory.conn.execute("update laneway.lease set attempt = 200 where seq = %s", [snoozed.seq])
    assert factory.run(leases.settle([Verdict(snoozed._replace(attempt=200), "snooze")]))
    assert factory.run(leases.heartbeat([done.seq], [1])) == []
    lines = [LogEntry(done, 1, "INFO", "hello", 0.0)]
    assert factory.run(leases.report([Report(done, done=1.0)], lines)) == []
    fenced = Verdict(done._replace(attempt=9), "finish")
    answers = factory.run(
        leases.settle([Verdict(done, "finish", "1"), Verdict(failing, "fail", delay_s=0.0), fenced])
    )
    assert sorted(answer.answer for answer in answers) == ["accepted", "fenced"]
    run_calls(factory, held)
    run_keys(factory)
    run_scheduler(factory)
    run_leader(factory, factory.run(leases.run_watchdog(factory.worker_id, 10.0)).epoch)
    # Its worker has renewed no other lease since: the job was not lost alone.
    factory.conn.execute(
        "update laneway.lease set lease_seconds = 3600, lease_until ="
        " clock_timestamp() + case when seq = %s then -1 else 60 end * interval '1 s'",
        [silent.seq],
    )
    assert factory.run(leases.run_watchdog(factory.worker_id, 10.0)).reclaimed == 1
    assert (
        factory.run(leases.fail_worker(factory.worker_id, "gone", hung=True, culprit=held.seq)) > 0
    )
    factory.run(leases.resign(factory.worker_id))
    factory.run(workers.stop(factory.worker_id))
    factory.run(workers.sweep(factory.worker_id))
    factory.run(notify.wake("wake *"))


def prepare_leader(factory: RoleFactory) -> None:
    """One job for each task of the leader."""
    late, asks, waits = (factory.submit(t, concurrency_key="k") for t in ("late", "asks", "waits"))
    finished = factory.running("finished", unique_key="own")
    factory.run(caller_transaction.finish(finished, "1", 0.1))
    factory.conn.execute(
        "insert into laneway.deadlines select seq, clock_timestamp() from laneway.jobs"
        " where id = %s on conflict do nothing",
        [late],
    )
    factory.conn.execute(
        "with w as (delete from laneway.ready r using laneway.jobs j where j.id = %s"
        " and r.seq = j.seq returning r.seq, r.rank)"
        " insert into laneway.awaiting (seq, job_type, workspace, rank, expires_at)"
        " select seq, 'asks', 'default', rank, clock_timestamp() from w",
        [asks],
    )
    factory.conn.execute(
        "with w as (delete from laneway.ready r using laneway.jobs j where j.id = %s"
        " and r.seq = j.seq returning r.*) insert into laneway.key_waiters"
        " select seq, 'default', 'k', rank, job_type, attempt, retries, false, ready_at from w",
        [waits],
    )


def run_leader(factory: RoleFactory, epoch: int) -> None:
    term = LeaderTerm(factory.worker_id, epoch)
    assert factory.run(retention.expire_overaged(term)).ended == 1
    for duty in (retention.expire_approvals, retention.release_self_finished):
        assert factory.run(duty(term)) == 1, duty
    # Two keys without a holder: the one of run_keys, and the one that was parked manually.
    assert factory.run(retention.sweep_keys(term)) == 2
    factory.run(retention.recount_usage(term))
    flow_statements.run_edges(factory, term)
    factory.run(retention.prune_events(term, 60.0))
    factory.run(retention.prune_records(term))
    factory.run(retention.delete_expired(term, WalkPosition()))


def run_calls(factory: RoleFactory, claim: Claim) -> None:
    assert factory.run(steps.save(claim, "one", "1", 0.1)).answer == "kept"
    assert factory.run(steps.read(claim)) == {"one": "1"}
    assert factory.run(call_limits.acquire(claim, {"rated": 1})).answer == "granted"
    assert factory.run(call_limits.release(claim, {"rated": 0})) == "given"
    run_waits(factory, claim)


def run_scheduler(factory: RoleFactory) -> None:
    holder, long_ago = factory.worker_id, datetime(2026, 1, 1, tzinfo=UTC)
    epoch = factory.run(leases.run_watchdog(holder, 10.0)).epoch
    for name, check in (("hourly", None), ("full", "is_full")):
        given = {"name": name, "job_type": "t", "cron": "0 * * * *", "check_name": check}
        assert factory.run(schedules.create(Schedule.of(given), "worker", DEFAULT_LIMITS))
    for due in factory.run(schedules.find_due(holder, ["is_full"])).due:
        factory.run(schedules.plan(due.name, due.seen, long_ago))
    found = {due.name: due for due in factory.run(schedules.find_due(holder, ["is_full"])).due}
    checked, plain = found["full"], found["hourly"]
    factory.run(schedules.find_ahead())
    assert factory.run(schedules.scopes())
    factory.run(schedules.settings(["nightly"]))
    factory.run(schedules.replan(plain, long_ago))
    entry = SlotEntry(long_ago, "submitted")
    assert factory.run(schedules.fire(plain, [entry], long_ago, holder, epoch)).taken == 1
    assert factory.run(schedules.begin_check(checked, holder, 60.0))
    factory.run(schedules.release_checks(holder))
    assert factory.run(schedules.stop("full", checked.seen, "no"))


def prepare_handler(factory: RoleFactory) -> list[Claim]:
    return [factory.running("a", unique_key="u"), factory.running("b")]


def run_handler(factory: RoleFactory, data: list[Claim]) -> None:
    read_migrations(factory)
    run_older_names(factory, "handler")
    finished, guarded = data
    held = factory.run(caller_transaction.guard(guarded))
    assert held.answer == "held"
    assert factory.run(caller_transaction.is_still_in(held.xid))
    assert factory.run(caller_transaction.finish(finished, "1", 0.1)) == "finished"


def prepare_client(factory: RoleFactory) -> dict[str, Any]:
    if factory.run(workers.published(["costly"])) == {}:
        prepare_gates(factory)
    factory.conn.execute(
        "insert into laneway.limits (name, rate_count, rate_period_s, scope)"
        " values ('near', 9, 1, 'host') on conflict do nothing"
    )
    factory.publish("limited", limits=("near",))
    _, handed, waiting = (factory.submit("keyed", concurrency_key="one") for _ in range(3))
    factory.settle(factory.claim("keyed", room=3)[0])
    limited, running = factory.submit("limited"), factory.running("a")
    assert factory.run(waits.note(running, limited))
    return {
        "keyed": [handed, waiting],
        "limited": limited,
        "running": running.job_id,
        "ended": factory.completed("b"),
    }


def run_client(factory: RoleFactory, data: dict[str, Any]) -> None:
    factory.conn.execute("select from laneway.jobs_as_text limit 0")
    flow_statements.run_flows(factory)
    factory.run(workers.published_names())
    read_migrations(factory)
    waiting = factory.submit(unique_key="k")
    assert factory.submit(unique_key="k") == waiting
    factory.conn.execute("select laneway.submit('greet', '{\"by\": \"SQL\"}')")
    client = Client(None, Settings.load())  # type: ignore[arg-type]
    batch: list[Given] = [
        ("bulk", {}, {"unique_key": "k"}),
        ("bulk", {}, {"delay": 60}),
        ("bulk", {}),
    ]
    for _ in range(2):
        made = asyncio.run(client.submit_many(batch, conn=factory.conn))
    assert [job.duplicate for job in made] == [True, False, False]
    gated: list[Given] = [("costly", {}), ("gated", {}, {"created_by": "me"})]
    made = asyncio.run(client.submit_many(gated, conn=factory.conn))
    assert [job.status for job in made] == ["pending", "awaiting_approval"]
    factory.submit("unheard_of", needs="approval")
    for job in made:
        assert factory.run(jobs.cancel(job.id, "me", None)).found_in == job.status
    factory.run(audit.record("me", "job.cancelled", "job", str(waiting)))
    run_holds(factory)
    factory.run(jobs.get(waiting))
    factory.run(jobs.get_attempts(data["ended"]))
    factory.run(jobs.wait(waiting))
    assert factory.run(waits.note(Claim(0, data["running"], 1), waiting))
    factory.run(sent_events.send("go", "k", "1", workspace="default"))
    factory.run(sent_events.send_all([sent_events.NewEvent("go", "k", "1", "default", None, 60)]))
    assert factory.run(jobs.cancel(waiting, "me", None)).found_in == "approved"
    assert factory.run(jobs.cancel(data["running"], "me", None)).found_in == "running"
    for keyed in data["keyed"]:
        assert factory.run(jobs.cancel(keyed, "me", None)).found_in == "approved"
    assert factory.run(jobs.cancel(data["ended"], "me", None)).found_in == "completed"
    factory.run(notify.wake("wake *"))


def find_by_prefix(factory: RoleFactory, job_id: UUID) -> None:
    for within in (None, REACH):
        factory.run(job_ids.find([IdPrefix(job_id.hex[:31])], within=within))


def prepare_approver(factory: RoleFactory) -> list[UUID]:
    prepare_gates(factory)
    kinds: list[dict[str, Any]] = [{}, {"delay": 60.0}, {"unique_key": "k"}]
    jobs = [factory.submit("gated", created_by="me", **more) for more in kinds]
    return [*jobs, factory.submit("gated", created_by="schedule:gone")]


def run_approver(factory: RoleFactory, data: list[UUID]) -> None:
    read_migrations(factory)
    due, later, refused, scheduled = data
    factory.conn.execute("select from laneway.jobs_as_text limit 0")
    factory.conn.execute("select id, status from laneway.jobs_view")
    factory.run(jobs.listing(JobFilter(status=Status.AWAITING_APPROVAL, max_cost=5, unit="EUR")))
    wanted = JobFilter(status=Status.PENDING, job_type="costly", q="x", within=REACH)
    factory.run(jobs.listing(wanted))
    factory.run(jobs.awaiting(JobFilter(q="x", max_cost=5, within=REACH)))
    factory.run(jobs.get(due))
    find_by_prefix(factory, due)
    factory.run(steps.listing(due))
    factory.run(handler_waits.listing(due))
    factory.run(flows.edges(due))
    factory.run(jobs.get_attempts(due))
    seal = factory.run(approvals.sealed(due)).seal
    assert factory.run(approvals.approve(due, "you", None, seal)).refusal is None
    assert factory.run(approvals.approve(due, "you", None, seal)).found_in == "approved"
    assert factory.run(approvals.approve(later, "you", None, None)).refusal is None
    assert factory.run(approvals.approve(scheduled, "you", None, None)).refusal == "two_person"
    assert factory.run(approvals.reject(refused, "you", "no")).refusal is None
    factory.run(jobs.listing(JobFilter(status=Status.CANCELLED, workspace="elsewhere")))
    assert len(factory.run(approvals.decisions(refused))) == 1
    factory.run(audit.record("you", "job.rejected", "job", str(refused)))
    factory.run(notify.wake("wake *"))


def run_reader(factory: RoleFactory, data: dict[str, Any]) -> None:
    run_earlier_reader(factory)
    read_migrations(factory)
    run_older_names(factory, "reader")
    factory.conn.execute("select id, lane, status from laneway.jobs_view")
    factory.run(explain.facts(data["limited"]))
    factory.run(explain.own_ahead(data["limited"], "ann"))
    factory.run(waits.graph(data["limited"]))
    factory.run(parents.read(data["limited"]))
    flow_statements.read_flows(factory)
    for status in (None, *Status):
        wanted = JobFilter(
            status=status, job_type="a", lane="x", q="x", max_cost=1, unit="EUR", within=REACH
        )
        for find in (jobs.listing, jobs.matching, jobs.count, jobs.awaiting):
            factory.run(find(wanted, limit=1))
    factory.run(jobs.listing(JobFilter(within=OWN)))
    factory.run(jobs.listing(JobFilter(error_type="E", within=OWN)))
    factory.run(jobs.listing(JobFilter(was_approved=True)))
    factory.run(jobs.listing(JobFilter(ended_within=60)))
    factory.run(jobs.listing(JobFilter(status=Status.CANCELLED, workspace="elsewhere")))
    factory.run(jobs.newest())
    find_by_prefix(factory, data["running"])
    factory.run(steps.listing(data["running"]))
    factory.run(handler_waits.listing(data["running"]))
    factory.run(approvals.decisions(data["running"]))
    factory.run(approvals.sealed(data["running"]))
    for read in (jobs.get, jobs.get_attempts, jobs.wait, explain.facts):
        factory.run(read(data["running"]))
    for lookup in (lanes.read, lanes.read_gate, lanes.measure, lanes.active, workers.listing):
        factory.run(lookup())
    factory.run(workers.published(["greet"]))
    factory.run(workers.published_names())
    factory.run(health.count_lapsed())
    factory.run(health.find_unhandled(most=9))
    factory.run(limits.read(10))
    factory.run(limits.holding_jobs(["openai"]))
    factory.run(history.listing(["lane"]))
    factory.run(freeze.frozen())
    factory.run(freeze.progress(["interactive"], 5))
    factory.run(schedules.read())
    factory.run(schedules.slots("nightly", 5))
    factory.run(
        stats.count_ends(window_s=60, bucket_s=60, lanes=["x"], job_type="a", bound=10, points=10)
    )
    factory.run(stats.count_failures(window_s=60, lanes=["x"], job_type=None, bound=10, limit=10))
    factory.run(jobs.count_states(JobFilter(job_type="a", lane="x", within=REACH), bound=10))
    factory.run(lanes.measure_lane("interactive"))
    factory.run(job_types.listing(["x"], limit=10))
    factory.run(job_types.publishers(limit=10))
    factory.run(health.measure_tables())
    factory.run(migrate.read_status())


def prepare_control(factory: RoleFactory) -> None:
    factory.conn.execute(
        "insert into laneway.schedules (name, job_type, cron) values ('nightly', 't', '0 3 * * *')"
    )
    factory.conn.execute("update laneway.schedules set cron = '0 4 * * *' where name = 'nightly'")
    factory.conn.execute(
        "insert into laneway.schedules (name, job_type, cron) values ('broken', 't', '0 3 * * *')"
    )
    spoil = "update laneway.schedules set workspace = '' where name = 'broken'"
    factory.conn.execute(PAST_CHECKS.format(spoil).encode())


def run_control(factory: RoleFactory) -> None:
    def undo(kind: str, name: str, to: int | None = None) -> None:
        rolled = factory.run(history.roll_back(kind, name, to, "me"))
        assert rolled.answer == "done"
        assert rolled.id is not None
        factory.run(history.workspace_of(rolled.id))

    assert factory.run(limits.create(Limit("gpu"), "me")) is not None
    assert factory.run(limits.tune("gpu", {"max_concurrent": 2}, "me")) is not None
    undo("limit", "gpu")
    assert factory.run(limits.delete("gpu", "me")).is_gone
    undo("limit", "gpu")
    undo("limit", "gpu")
    factory.run(workers.lock(factory.worker_id))
    factory.run(workers.drain(factory.worker_id, "me", drained=True))
    factory.run(lanes.create(Lane("gone"), "me"))
    undo("lane", "gone")
    undo("lane", "gone")
    assert factory.run(freeze.freeze(["gone"], "me")) == ["gone"]
    assert factory.run(freeze.freeze(["gone"], "me")) == ["gone"]
    assert factory.run(freeze.thaw(None, "me")) == [Thawed("gone", True, True)]
    undo("lane", "gone")
    factory.run(lanes.lock())
    factory.run(lanes.count_running())
    factory.run(lanes.find_waiting(["greet"]))
    factory.run(lanes.create(Lane("spare"), "me"))
    factory.run(lanes.replace_all([state_of(Lane("loaded"))], ["spare"], "me"))
    undo("schedule", "nightly")
    undo("schedule", "nightly", 0)
    undo("schedule", "nightly")


def run_schedules(factory: RoleFactory) -> None:
    assert factory.run(schedules.change("hourly", {"cron": "1 * * * *"}, "me", DEFAULT_LIMITS))
    factory.run(schedules.scopes())
    assert factory.run(schedules.run_now("hourly", "me", check=False))
    factory.run(schedules.run_now("broken", "me", check=False))
    assert factory.run(schedules.run_now("full", "me", check=True))
    assert factory.run(schedules.delete("hourly", "me"))


def prepare_server(factory: RoleFactory) -> dict[str, Any]:
    prepare_worker(factory)
    prepare_control(factory)
    factory.publish("d", max_age_s=3600.0)
    gated = [factory.submit("gated", created_by="me", unique_key=key) for key in "abc"]
    gated.append(factory.submit("gated", created_by="schedule:gone"))
    waiting = factory.submit("c")
    return {
        **prepare_client(factory),
        "gated": gated,
        "waiting": waiting,
        "own": prepare_handler(factory),
        "failed": factory.failed("d", unique_key="f"),
        "old": factory.completed("e"),
        "flow": flow_statements.prepare_flow(factory),
    }


def run_requests(factory: RoleFactory) -> None:
    who = uuid4()
    answer = idempotency.KeptResponse(b"digest", 200, "{}", None)
    assert factory.run(idempotency.lock(who, "k"))
    for _ in range(2):
        factory.run(idempotency.save(who, "k", answer))
    assert factory.run(idempotency.read(who, "k")) == answer
    factory.run(idempotency.wait_for_lock(who, "k"))
    factory.run(idempotency.delete_unfinished(who, "k"))
    run = factory.run(bulk.begin(uuid4(), who, "me", "cancel"))
    factory.run(bulk.report(run.id, "done", 1, {}))
    assert factory.run(bulk.read(run.id)).state == "done"
    assert factory.run(job_types.forget_publisher("app", None)) == []
    new = NewJob(id=new_job_id(), job_type="greet")
    run_earlier_server(factory)
    quota = quotas.Quota(who, USUAL)
    mine = Actor("me", principal_id=who)
    assert [job.id for job in factory.run(grouped_submit.submit([(new, mine, quota)]))] == [new.id]
    factory.run(quotas.check(quota, [quotas.RequestedJob("default", "greet", "k")]))
    factory.run(quotas.charge(quota, [new.id]))
    assert factory.run(quotas.sweep(who)) == 0


def run_streams(factory: RoleFactory, job_id: UUID) -> None:
    seq = factory.run(events.numbers([job_id]))[job_id]
    start = factory.run(events.position())[0]
    factory.run(events.open_watches([seq, 0], 60.0))
    factory.run(events.reconcile([seq, 0]))
    assert factory.run(events.renew_watches([seq], 90.0)) == {seq}
    factory.run(events.can_resume([seq], start))
    factory.run(events.between(start))
    assert factory.run(events.of_job(seq, None)).events
    assert factory.run(events.jobs([seq])).keys() == {seq}
    assert factory.run(events.jobs([seq], values=False)).keys() == {seq}
    assert factory.run(access.review([b"x"], 60.0)) == {}


def run_server(factory: RoleFactory, data: dict[str, Any]) -> None:
    run_others(factory, data)
    run_own(factory, data)


def run_others(factory: RoleFactory, data: dict[str, Any]) -> None:
    """The work that the server shares with other roles, with only their grants."""
    run_reader(factory, data)
    run_client(factory, data)
    run_handler(factory, data["own"])
    factory.run(leases.settle([Verdict(data["own"][0], "confirm")]))
    run_approver(factory, data["gated"])
    run_worker(factory, None)


def run_own(factory: RoleFactory, data: dict[str, Any]) -> None:
    run_older_names(factory, "server")
    run_access(factory)
    run_requests(factory)
    run_streams(factory, data["running"])
    run_remote(factory)
    flow_statements.run_verbs_on_flow(factory, data["flow"])
    assert factory.run(job_places.read([uuid4()])) == {}
    assert factory.run(jobs.retry(data["gated"][2])).found_in == "cancelled"
    assert factory.run(jobs.reprioritize(data["waiting"], 5)).found_in == "approved"
    assert factory.run(jobs.reprioritize(data["old"], 5)).found_in == "completed"
    assert factory.run(jobs.retry(data["failed"])).found_in == "failed"
    assert factory.run(jobs.retry(data["failed"])).found_in == "approved"
    assert factory.run(jobs.run_now(data["waiting"])).found_in == "due"
    assert factory.run(jobs.delete(data["old"])) == data["old"]
    factory.run(lanes.tune("system", {"max_slots": 3}, "me"))
    factory.run(lanes.move_type("system", "c", "me"))
    run_control(factory)
    run_webhooks(factory)
    run_schedules(factory)
    assert factory.run(audit.listing(AuditFilter(actor="me"))).entries
    factory.run(history.transaction_changes("limit"))
    factory.run(lanes.pause(True, "me"))
    factory.run(health.read_server())
    factory.run(health.oldest_snapshot())
    factory.run(health.find_blockers())
    factory.run(health.read_rights())
    factory.run(health.count_attention(bound=10))
    flow_statements.count_open(factory)
    factory.run(health.current_role())
    factory.run(health.settings_named(["jit"]))
    factory.run(health.role_settings(["jit"]))
    factory.run(brief_waits.set_lock_timeout(1.0))
    factory.run(health.sample_lost(newest=9, places=2, each=2))
    factory.run(health.look_for_lost(after=0, scan=9))
    factory.run(health.end_lost([1]))
    # As servers of earlier versions call it.
    factory.conn.execute("select laneway.end_lost(1)")
    factory.run(health.recount_usage())
    factory.run(health.find_stuck_waits(look=9))
    factory.run(health.find_old_waits(look=9, age_s=9))
    factory.run(health.mend_waits(after=0, look=9))
    assert factory.run(row_security.applies())
    factory.run(row_security.restrict(["nowhere"]))
    assert factory.run(jobs.count(JobFilter(), limit=9)).matched == 0


def read_migrations(factory: RoleFactory) -> None:
    factory.conn.execute("select number from laneway.migrations")


ROLE_WORK: dict[str, tuple[Callable[[RoleFactory], Any], Callable[[RoleFactory, Any], None]]] = {
    "worker": (prepare_worker, run_worker),
    "handler": (prepare_handler, run_handler),
    "client": (prepare_client, run_client),
    "approver": (prepare_approver, run_approver),
    "reader": (prepare_client, run_reader),
    "server": (prepare_server, run_server),
}
