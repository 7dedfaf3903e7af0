"""The statements of flows and edges, run with the rights of a role."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg

from laneway.domain.flow import FlowFilter
from laneway.store import edges, flows, jobs
from laneway.store.retention import LeaderTerm
from tests.control.wait_statements import Session


def prepare_edges(conn: psycopg.Connection[Any], napping: UUID) -> None:
    """Leave work to a poll: a sleeper that is due, an arrival, and an event to look at."""
    conn.execute(
        "with w as (delete from laneway.ready r using laneway.jobs j where j.id = %s"
        " and r.seq = j.seq returning r.*) insert into laneway.waiting"
        " (seq, job_type, rank, reason, name, wake_at)"
        " select seq, job_type, rank, 'sleep', 'nap', clock_timestamp() - interval '1 s' from w",
        [napping],
    )
    conn.execute("insert into laneway.arrivals (kind, seq) values ('counted', 0)")
    conn.execute("insert into laneway.event_checks (seq) values (0)")


def prepare_flow(session: Session, conn: psycopg.Connection[Any]) -> list[UUID]:
    """A flow of two jobs, the second after the first; both were cancelled."""
    flow_id = uuid4()
    session.run(flows.create(flow_id, "weekly", "default", [], "me"))
    ids: list[UUID] = []
    for _ in range(2):
        submit = "select job_id from laneway.submit('part', after => %s::uuid[], flow => %s)"
        row = conn.execute(submit, [ids, flow_id]).fetchone()
        assert row is not None
        ids.append(row[0])
    for job_id in reversed(ids):
        session.run(jobs.cancel(job_id, "me", None))
    return ids


def run_verbs_on_flow(session: Session, ids: list[UUID]) -> None:
    """Retry and delete jobs of a flow: they change its edges and sums."""
    session.run(flows.retry(uuid4(), limit=9, after=0))
    assert not session.run(flows.is_remembered(ids[1]))
    assert session.run(jobs.retry(ids[1])).found_in == "cancelled"
    assert session.run(jobs.cancel(ids[1], "me", None)).found_in == "waiting"
    for job_id in ids:
        assert session.run(jobs.delete(job_id)) == job_id


def run_flows(session: Session) -> None:
    flow_id = uuid4()
    session.run(flows.create(flow_id, "nightly", "default", ["n"], "me"))
    assert session.run(flows.get(flow_id)).name == "nightly"
    cancelled = session.run(flows.cancel(flow_id, "me", None, limit=9, before=None))
    assert (cancelled.cancelled, cancelled.requested) == (0, 0)


def read_flows(session: Session) -> None:
    session.run(flows.listing(FlowFilter(), within=None, limit=9, before=None))
    assert session.run(flows.states(uuid4(), limit=9, after=None)).items == []
    assert session.run(flows.edges(uuid4())).after == ()


def count_open(session: Session) -> None:
    assert len(session.run(flows.count_open(bound=9)).waiting) == 4


def run_edges(session: Session, term: LeaderTerm) -> None:
    session.run(edges.advance())
    session.run(edges.fold_tallies(term))
    session.run(edges.mend_waits(term, 0))
