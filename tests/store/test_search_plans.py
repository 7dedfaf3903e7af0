"""A search costs no more than its bound, for any filter and any statistics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from laneway.domain.audit import AuditFilter
from laneway.domain.filter import JobFilter
from laneway.domain.permissions import Reach, Term
from laneway.domain.states import Status
from laneway.store import audit, explain, jobs
from laneway.store.history import NEWEST
from laneway.store.statement import Statement
from tests.store.test_plans import SAY_EMPTY, Spent, counters, spent
from tests.support.store_client import StoreClient

pytestmark = pytest.mark.usefixtures("new_sessions")

ENDED = 30_000
READY = 30_000
LOOK = 2_000
TABLES = ("jobs", "outcome", "ready", "delayed", "lease", "key_waiters", "awaiting")
FILL = f"""
insert into laneway.jobs (seq, id, job_type, payload, created_by)
select g, gen_random_uuid(), 'type' || mod(g, 10), '{{}}', case when mod(g, 2) = 0 then 'bob' end
  from generate_series(1, {ENDED + READY}) g;
insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries, lane)
select g, case when mod(g, 5) = 0 then 'failed' else 'completed' end, 'default',
       'type' || mod(g, 10), 0, 1, 0, case when mod(g, 3) > 0 then 'default' end
  from generate_series(1, {ENDED}) g;
insert into laneway.ready (seq, job_type, rank)
select seq, job_type, 0 from laneway.jobs where seq > {ENDED};
insert into laneway.workers (id, name, host, pid, code, job_types, concurrency)
values (gen_random_uuid(), 'idle', 'h', 1, '0', '{{}}', 1)
"""
LANES = Reach((Term(lanes=frozenset({"system", "maintenance"})),))
# Nothing matches any of these.
SPARSE = {
    "lane": JobFilter(lane="system"),
    "lanes of a grant": JobFilter(within=LANES),
    "worker": JobFilter(worker="idle"),
    "type": JobFilter(job_type="never"),
    "tag": JobFilter(tag="never"),
    "text": JobFilter(q="never"),
    "workspace": JobFilter(workspace="never"),
    "cost": JobFilter(max_cost=1, unit="EUR"),
    "error": JobFilter(error_type="never"),
    "approved": JobFilter(was_approved=True, job_type="never"),
    "not approved": JobFilter(was_approved=False, job_type="never"),
    "ended": JobFilter(ended_within=0),
    "lanes of a grant, or own": JobFilter(within=Reach((Term(owner="absent"), *LANES.terms))),
    "own in a lane": JobFilter(lane="system", within=Reach((Term(owner="bob"),))),
}


@pytest.fixture(scope="module", params=["never analysed", "statistics of empty tables"])
def filled(module_dsn: str, request: pytest.FixtureRequest) -> Iterator[StoreClient]:
    with StoreClient(module_dsn) as db:
        for table in TABLES:
            db.do(f"alter table laneway.{table} set (autovacuum_enabled = off)")
            db.do(f"truncate laneway.{table}")
        db.do(FILL)
        if request.param == "statistics of empty tables":
            db.do(SAY_EMPTY)
        yield db


@pytest.mark.parametrize(
    "status",
    [None, Status.PENDING, Status.APPROVED, Status.RUNNING, Status.COMPLETED, Status.FAILED],
)
@pytest.mark.parametrize("choice", SPARSE)
def test_search_for_rare_value_reads_bounded_number_of_rows(
    filled: StoreClient, choice: str, status: Status | None
) -> None:
    wanted = replace(SPARSE[choice], status=status)
    finds: list[Statement[Any]] = [
        jobs.listing(wanted, limit=50, scan=LOOK),
        jobs.matching(wanted, limit=200, scan=LOOK),
        jobs.count(wanted, limit=10_001, scan=LOOK),
    ]
    for find in finds:
        used = spent(filled, partial(filled.run, find))
        # Few rows of a type that waits are sorted first.
        few = 5_001 if status in (Status.APPROVED, Status.PENDING) else 0
        assert sum(used[table] for table in TABLES) <= 2 * LOOK + few
        assert not used.scans.get("outcome")


def test_search_of_all_states_reads_older_ones_only_when_it_gets_there(filled: StoreClient) -> None:
    """The tables of the states are merged, not read one after the other."""
    wanted = JobFilter(lane="system")
    used = spent(filled, lambda: filled.run(jobs.listing(wanted, limit=50, scan=LOOK)))
    assert used["ready"] == LOOK
    # All queued jobs are newer.
    assert used["outcome"] <= 10


@pytest.mark.parametrize("is_said_to_be_empty", [False, True])
def test_search_of_rare_workspace_reads_older_states_only_when_it_gets_there(
    db: StoreClient, is_said_to_be_empty: bool
) -> None:
    """Ended jobs, found by workspace, are merged with the other states."""
    # Without index entries of deleted rows.
    for table in ("jobs", "outcome", "ready", "delayed"):
        db.do(f"truncate laneway.{table}")
    db.do(
        "insert into laneway.jobs (seq, id, job_type, payload)"
        " select g, gen_random_uuid(), 'type', '{}' from generate_series(1, 4000) g"
    )
    db.do(
        "insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries)"
        " select g, 'completed', 'default', 'type', 0, 1, 0 from generate_series(1, 100) g"
    )
    db.do(
        "insert into laneway.delayed (seq, job_type, rank, run_at)"
        " select g, 'type', 0, clock_timestamp() + interval '1 day'"
        " from generate_series(101, 2000) g"
    )
    db.do(
        "insert into laneway.ready (seq, job_type, rank)"
        " select g, 'type', 0 from generate_series(2001, 4000) g"
    )
    if is_said_to_be_empty:
        db.do(SAY_EMPTY)
    wanted = JobFilter(workspace="rare", lane="system")
    used = spent(db, lambda: db.run(jobs.listing(wanted, limit=50, scan=LOOK)))
    assert used["ready"] >= 100
    # One row in each step.
    assert used["delayed"] <= 10


def test_rare_status_is_found_by_index_among_many_ends(filled: StoreClient) -> None:
    wanted = JobFilter(status=Status.CANCELLED)
    used = spent(filled, lambda: filled.run(jobs.listing(wanted, limit=50)))
    assert sum(used[table] for table in TABLES) <= 500


def test_search_goes_on_by_index_where_it_stopped(filled: StoreClient) -> None:
    wanted = JobFilter(status=Status.FAILED)
    blocks = index_blocks(filled, "outcome_listing", jobs.matching(wanted, limit=25, before=500))
    # A descent for the page and two to learn the workspaces; all newer failures are 25 blocks more.
    assert blocks <= 15


def index_blocks(db: StoreClient, index: str, find: Statement[Any]) -> int:
    read = f"select pg_stat_get_xact_blocks_fetched('laneway.{index}'::regclass)"
    db.begin()
    try:
        before = db.one(read)
        db.run(find)
        return int(db.one(read) - before)
    finally:
        db.rollback()


@pytest.mark.parametrize("owner", ["absent", "bob"])
@pytest.mark.parametrize("job_type", [None, "type1", "never"])
def test_own_jobs_are_found_by_their_index(
    filled: StoreClient, owner: str, job_type: str | None
) -> None:
    wanted = JobFilter(job_type=job_type, within=Reach((Term(owner=owner),)))
    find = jobs.matching(wanted, limit=25, scan=LOOK)
    used = spent(filled, partial(filled.run, find))
    most = 10 if owner == "absent" else LOOK
    assert sum(used[table] for table in TABLES) <= most


@pytest.mark.parametrize("is_said_to_be_empty", [False, True])
def test_few_of_jobs_that_fit_are_read_as_whole(db: StoreClient, is_said_to_be_empty: bool) -> None:
    """Also where no row matches for long, and then every row."""
    kind = "case when g > 600 then 'new' else 'old' end"
    # Without index entries of deleted rows.
    db.do("truncate laneway.jobs")
    db.do("truncate laneway.outcome")
    db.do(
        "insert into laneway.jobs (seq, id, job_type, payload)"
        f" select g, gen_random_uuid(), {kind}, '{{}}' from generate_series(1, 3000) g"
    )
    db.do(
        "insert into laneway.outcome"
        " (seq, status, workspace, job_type, priority, attempt, retries, lane)"
        f" select g, 'completed', 'default', {kind}, 0, 1, 0, 'default'"
        " from generate_series(1, 3000) g"
    )
    if is_said_to_be_empty:
        db.do(SAY_EMPTY)
    wanted = JobFilter(status=Status.COMPLETED, job_type="old", q="never")
    used = spent(db, lambda: db.run(jobs.listing(wanted, limit=50, scan=5_000)))
    # Of each that is read, its row and the size of its payload.
    assert 10 <= used["jobs"] <= 150


def test_dry_run_counts_without_reading_whole_jobs(filled: StoreClient) -> None:
    wanted = JobFilter(status=Status.COMPLETED, within=Reach((Term(lanes=frozenset({"default"})),)))
    used = spent(filled, lambda: filled.run(jobs.count(wanted, limit=10_001)))
    assert used["outcome"] <= 20_000
    assert used["jobs"] <= 10_010
    assert used["ready"] == 0


@pytest.mark.parametrize("owner", ["absent", "bob"])
def test_counts_of_own_jobs_read_them_by_their_index(filled: StoreClient, owner: str) -> None:
    wanted = JobFilter(within=Reach((Term(owner=owner),)))
    used = spent(filled, lambda: filled.run(jobs.count_states(wanted, bound=10_000)))
    assert sum(used[table] for table in TABLES) <= (10 if owner == "absent" else 6_000)


def test_counts_look_at_fewer_jobs_where_each_costs_more(filled: StoreClient) -> None:
    for wanted, most in ((JobFilter(tag="never"), 12_000), (JobFilter(within=LANES), 12_000)):
        used = spent(filled, partial(filled.run, jobs.count_states(wanted, bound=10_000)))
        assert sum(used[table] for table in TABLES) <= most


ACTS = """
insert into laneway.audit (at, actor, door, action, kind, name, outcome)
select now() - (20000 - g) * interval '1 s', case when g = 7 then 'ann' else 'bob' end, 'http',
       'job.cancelled', case when g = 9 then 'lane' else 'job' end, g::text, 'done'
  from generate_series(1, 20000) g
"""


@pytest.mark.parametrize(
    "wanted, most, is_whole",
    [
        ({"door": "mcp"}, 2 * LOOK, False),
        ({"outcome": "refused"}, 2 * LOOK, False),
        ({"action": "never"}, 2 * LOOK, False),
        ({"workspace": "never"}, 2 * LOOK, False),
        ({"actor": "ann"}, 10, True),
        ({"kind": "lane", "name": "9"}, 10, True),
        ({"door": "mcp", "newer_than": 60.0}, 2 * LOOK, True),
    ],
    ids=str,
)
def test_search_of_audit_is_bounded(
    module_dsn: str, wanted: dict[str, Any], most: int, is_whole: bool
) -> None:
    with StoreClient(module_dsn, prepare_threshold=0) as db:

        def look() -> None:
            db.do(ACTS)
            db.do("analyze laneway.audit")
            before = counters(db)
            found = db.run(audit.listing(AuditFilter(**wanted), limit=50, scan=LOOK))
            assert Spent(before, counters(db))["audit"] <= most + 100
            assert (found.stopped_at is None) == is_whole

        spent(db, look)


def test_search_of_audit_goes_on_where_it_stopped(module_dsn: str) -> None:
    with StoreClient(module_dsn) as db:

        def look() -> None:
            db.do(ACTS)
            found, before, pages = [], NEWEST, 0
            while True:
                wanted = AuditFilter(workspace=None, newer_than=None, door="http", name="17999")
                page = db.run(audit.listing(wanted, limit=5, before=before, scan=LOOK))
                found += page.entries
                pages += 1
                if page.stopped_at is None:
                    break
                before = page.stopped_at
            assert [act.name for act in found] == ["17999"]
            assert pages > 2

        spent(db, look)


def test_explain_reads_lanes_once_however_many_types_wait(module_dsn: str) -> None:
    with StoreClient(module_dsn, prepare_threshold=0) as db:

        def look() -> None:
            db.do("insert into laneway.worker_lanes (name, job_types)"
                    " select 'l' || g, array['of' || g, 'more' || g]"
                    " from generate_series(1, 300) g")  # fmt: skip
            db.do("insert into laneway.jobs (seq, id, job_type, payload)"
                    " select 900000 + g, gen_random_uuid(), 'of' || g, '{}'"
                    " from generate_series(1, 300) g")  # fmt: skip
            db.do("insert into laneway.ready (seq, job_type, rank)"
                    " select seq, job_type, -1 from laneway.jobs where seq > 900000")  # fmt: skip
            db.do("select setval('laneway.jobs_seq_seq', 1000000)")
            for job_type in ("of7", "plain"):
                job_id = db.id_of(db.submit(job_type))
                before = counters(db)
                found = db.run(explain.facts(job_id))
                assert found is not None
                assert job_type == "plain" or found.ahead == 1
                assert Spent(before, counters(db))["worker_lanes"] <= 20 * 310

        db.begin()
        try:
            look()
        finally:
            db.rollback()
