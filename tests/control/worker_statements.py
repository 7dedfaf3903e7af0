"""The statements of a worker, run with the rights of a role."""

from __future__ import annotations

from uuid import uuid4

from laneway.domain.claim import Claim
from laneway.domain.lane import Lane
from laneway.domain.limit import Limit
from laneway.store import caller_transaction, job_types, lanes, leases, limits, notify, workers
from laneway.store.leases import LogEntry, Report, Verdict
from tests.control import flow_statements
from tests.control.approval_statements import prepare_gates, run_gates
from tests.control.earlier_statements import read_migrations, run_earlier_worker, run_older_names
from tests.control.handler_statements import run_calls
from tests.control.hook_statements import publish_hooks, read_target
from tests.control.leader_statements import prepare_leader, run_leader
from tests.control.limit_statements import prepare_turns, run_turns
from tests.control.schedule_statements import run_scheduler
from tests.control.wait_statements import suspend
from tests.support.job_factory import JobFactory


def prepare_worker(factory: JobFactory) -> None:
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


def run_worker(factory: JobFactory, _: None) -> None:
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
    assert factory.run(workers.published(["encode"])).keys() == {"encode"}
    factory.run(workers.published_names())
    publish_hooks(factory)
    read_target(factory)
    factory.register(("ingestion",))
    presence = workers.Presence(factory.worker_id)
    factory.run(workers.touch(factory.worker_id))
    promoted = factory.run(lanes.peek(["ingestion", "polarity"])).promoted
    assert sorted(promoted) == ["napping", "polarity"]
    assert factory.run(lanes.peek([], presence=presence)).is_drained is False
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


def run_keys(factory: JobFactory) -> None:
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
