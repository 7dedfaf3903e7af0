"""The statements of flows and edges, run with the rights of a role."""

from __future__ import annotations

from uuid import UUID, uuid4

from laneway.domain.flow import FlowFilter
from laneway.store import edges, flows, jobs
from laneway.store.retention import LeaderTerm
from tests.support.job_factory import JobFactory


def prepare_edges(factory: JobFactory) -> None:
    """Leave work to a poll: a sleeper that is due, an arrival, and an event to look at."""
    napping = factory.submit("napping")
    factory.conn.execute(
        "with w as (delete from laneway.ready r using laneway.jobs j where j.id = %s"
        " and r.seq = j.seq returning r.*) insert into laneway.waiting"
        " (seq, job_type, rank, reason, name, wake_at)"
        " select seq, job_type, rank, 'sleep', 'nap', clock_timestamp() - interval '1 s' from w",
        [napping],
    )
    factory.conn.execute("insert into laneway.arrivals (kind, seq) values ('counted', 0)")
    factory.conn.execute("insert into laneway.event_checks (seq) values (0)")


def prepare_flow(factory: JobFactory) -> list[UUID]:
    """A flow of two jobs, the second after the first; both were cancelled."""
    flow_id = uuid4()
    factory.run(flows.create(flow_id, "weekly", "default", [], "me"))
    ids: list[UUID] = []
    for _ in range(2):
        submit = "select job_id from laneway.submit('part', after => %s::uuid[], flow => %s)"
        row = factory.conn.execute(submit, [ids, flow_id]).fetchone()
        assert row is not None
        ids.append(row[0])
    for job_id in reversed(ids):
        factory.run(jobs.cancel(job_id, "me", None))
    return ids


def run_verbs_on_flow(factory: JobFactory, ids: list[UUID]) -> None:
    """Retry and delete jobs of a flow: they change its edges and sums."""
    factory.run(flows.retry(uuid4(), limit=9, after=0))
    assert [factory.run(flows.is_left_alone(one)) for one in ids] == [False, True]
    assert factory.run(jobs.retry(ids[1])).found_in == "cancelled"
    assert factory.run(jobs.cancel(ids[1], "me", None)).found_in == "waiting"
    for job_id in ids:
        assert factory.run(jobs.delete(job_id)) == job_id


def run_flows(factory: JobFactory) -> None:
    flow_id = uuid4()
    factory.run(flows.create(flow_id, "nightly", "default", ["n"], "me"))
    assert factory.run(flows.get(flow_id)).name == "nightly"
    cancelled = factory.run(flows.cancel(flow_id, "me", None, limit=9, before=None))
    assert (cancelled.cancelled, cancelled.requested) == (0, 0)


def read_flows(factory: JobFactory) -> None:
    factory.run(flows.listing(FlowFilter(), within=None, limit=9, before=None))
    assert factory.run(flows.states(uuid4(), limit=9, after=None)).items == []
    assert factory.run(flows.edges(uuid4())).after == ()


def count_open(factory: JobFactory) -> None:
    assert len(factory.run(flows.count_open(bound=9)).waiting) == 4


def run_edges(factory: JobFactory, term: LeaderTerm) -> None:
    factory.run(edges.advance())
    factory.run(edges.fold_tallies(term))
    factory.run(edges.mend_waits(term, 0))
