"""The statements of a leader, run with the rights of a role."""

from __future__ import annotations

from laneway.store import caller_transaction, retention
from laneway.store.retention import LeaderTerm, WalkPosition
from tests.control import flow_statements
from tests.support.job_factory import JobFactory


def prepare_leader(factory: JobFactory) -> None:
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


def run_leader(factory: JobFactory, epoch: int) -> None:
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
