"""The statements of a server, run with the rights of a role."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from laneway.domain.actor import Actor
from laneway.domain.audit import AuditFilter
from laneway.domain.bounds import USUAL
from laneway.domain.filter import JobFilter
from laneway.domain.freeze import Thawed
from laneway.domain.job import NewJob, new_job_id
from laneway.domain.lane import Lane
from laneway.domain.lane_setup import state_of
from laneway.domain.limit import Limit
from laneway.store import (
    access,
    audit,
    brief_waits,
    bulk,
    events,
    freeze,
    grouped_submit,
    health,
    held_jobs,
    history,
    idempotency,
    job_places,
    job_types,
    jobs,
    lanes,
    leases,
    limits,
    quotas,
    row_security,
    sent_events,
    workers,
)
from laneway.store.leases import Verdict
from tests.control import flow_statements
from tests.control.access_statements import run_access
from tests.control.approval_statements import run_approver
from tests.control.client_statements import prepare_client, run_client
from tests.control.earlier_statements import run_earlier_server, run_older_names
from tests.control.handler_statements import prepare_handler, run_handler
from tests.control.hook_statements import run_webhooks
from tests.control.reader_statements import run_reader
from tests.control.remote_statements import run_remote
from tests.control.schedule_statements import prepare_schedules, run_schedules
from tests.control.worker_statements import prepare_worker, run_worker
from tests.support.job_factory import JobFactory


def prepare_server(factory: JobFactory) -> dict[str, Any]:
    prepare_worker(factory)
    prepare_schedules(factory)
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


def run_server(factory: JobFactory, data: dict[str, Any]) -> None:
    run_others(factory, data)
    run_own(factory, data)


def run_others(factory: JobFactory, data: dict[str, Any]) -> None:
    """The work that the server shares with other roles, with only their grants."""
    run_reader(factory, data)
    run_client(factory, data)
    run_handler(factory, data["own"])
    factory.run(leases.settle([Verdict(data["own"][0], "confirm")]))
    run_approver(factory, data["gated"])
    run_worker(factory, None)


def run_own(factory: JobFactory, data: dict[str, Any]) -> None:
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
    factory.run(held_jobs.find_held(look=9))
    factory.run(health.mend_waits(after=0, look=9))
    assert factory.run(row_security.applies())
    factory.run(row_security.restrict(["nowhere"]))
    assert factory.run(jobs.count(JobFilter(), limit=9)).matched == 0


def run_requests(factory: JobFactory) -> None:
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
    kept = quotas.Quota(quotas.event_account(who), USUAL)
    more: dict[str, Any] = {"workspace": "default", "sent_by": "me", "retention_s": 60.0}
    factory.run(sent_events.send_counted(kept, "go", "k", "1", **more))


def run_streams(factory: JobFactory, job_id: UUID) -> None:
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


def run_control(factory: JobFactory) -> None:
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
