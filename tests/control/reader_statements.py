"""The statements of a reader, run with the rights of a role."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from laneway.domain.filter import JobFilter
from laneway.domain.job_id import IdPrefix
from laneway.domain.permissions import Reach, Term
from laneway.domain.states import Status
from laneway.store import (
    approvals,
    explain,
    freeze,
    handler_waits,
    health,
    history,
    job_ids,
    job_types,
    jobs,
    lanes,
    limits,
    migrate,
    parents,
    schedules,
    stats,
    steps,
    waits,
    workers,
)
from tests.control import flow_statements
from tests.control.earlier_statements import read_migrations, run_earlier_reader, run_older_names
from tests.support.job_factory import JobFactory

OWN = Reach((Term(owner="me"),))
REACH = Reach((*OWN.terms, Term(workspace="ours")))


def run_reader(factory: JobFactory, data: dict[str, Any]) -> None:
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


def find_by_prefix(factory: JobFactory, job_id: UUID) -> None:
    for within in (None, REACH):
        factory.run(job_ids.find([IdPrefix(job_id.hex[:31])], within=within))
