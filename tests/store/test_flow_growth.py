"""The cost of one more job of a flow does not grow with the flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

import pytest

from laneway.store import handler_waits
from tests.store.edges import Edges
from tests.store.test_durable_waits import entries
from tests.store.test_plans import counters
from tests.support.store_client import StoreClient

STEPS = (100, 1000, 10_000)
# Tallies that a submit may meet before it adds them up, and a few rows besides.
MOST = 200

FETCHED = """
select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0) from pg_stat_xact_user_tables
 where schemaname = 'laneway' and relname in ('flows', 'flow_tallies', 'links')
"""


@pytest.fixture
def edges(db: StoreClient) -> Edges:
    return Edges(db)


def add(db: StoreClient, flow: UUID, count: int) -> None:
    """Adds jobs one by one, each in its own call."""
    db.do(
        "do $$ begin for i in 1 .. " + str(count) + " loop"
        f" perform laneway.submit('t', flow => '{flow}'); end loop; end $$"
    )


def read_by(
    db: StoreClient,
    call: Callable[[], object],
    tables: Sequence[str] = ("flows", "flow_tallies", "links"),
) -> int:
    """Rows of these tables that a call reads in the current transaction."""
    before = counters(db)
    call()
    after = counters(db)
    return sum(after[one][1] - before.get(one, (0, 0))[1] for one in tables if one in after)


def living_rows_read_by(db: StoreClient, call: Callable[[], object]) -> int:
    """Rows of flows that a call fetches in the current transaction, without dead index entries.

    Replaced tallies leave entries in the index for as long as any snapshot is older.
    """
    before = db.one(FETCHED)
    call()
    return int(db.one(FETCHED) - before)


def submit(db: StoreClient, flow: UUID) -> None:
    db.do("select laneway.submit('t', flow => %s)", flow)


def test_job_added_in_one_transaction_reads_no_more_in_a_larger_flow(
    db: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    read = []
    with db.conn.transaction():
        added = 0
        for size in STEPS:
            add(db, flow, size - added)
            added = size + 1
            read.append(read_by(db, lambda: submit(db, flow)))
    assert max(read) <= 20, read
    assert db.one("select jobs from laneway.list_flows(null, 1, %s)", flow) == STEPS[-1] + 1


def test_job_added_in_its_own_transaction_reads_no_more_in_a_larger_flow(
    db: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    read = []
    added = 0
    for size in (100, 1000, 3000):
        while added < size:
            submit(db, flow)
            added += 1
        with db.conn.transaction():
            read.append(living_rows_read_by(db, lambda: submit(db, flow)))
        added += 1
    assert max(read) <= MOST, read
    assert db.one("select count(*) from laneway.flow_tallies") <= MOST
    assert db.one("select jobs from laneway.list_flows(null, 1, %s)", flow) == added


def test_job_after_another_reads_no_more_in_a_larger_flow(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    tables = ("flows", "flow_tallies", "links", "open_edges", "countdowns", "waiting", "ready")
    chain = (
        "do $$ declare v_last uuid[]; begin for i in 1 .. %s loop v_last := array("
        f"select job_id from laneway.submit('t', after => v_last, flow => '{flow}'));"
        " end loop; end $$"
    )
    read = []
    with db.conn.transaction():
        for count in (100, 900, 4000):
            db.do(chain % count)
            parent = db.one("select max(seq) from laneway.links")
            job_id = db.id_of(parent)
            submit_after = "select laneway.submit('t', after => %s, flow => %s)"
            call = partial(db.do, submit_after, [job_id], flow)
            read.append(read_by(db, call, tables))
    assert max(read) <= 40, read


def test_sub_job_added_alone_reads_no_more_in_a_larger_flow(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    claim = edges.claim(edges.submit("o", flow=flow), "o")
    # As in a session that has made its plans while the tables had one row.
    db.do("vacuum analyze")
    db.do("set plan_cache_mode = force_generic_plan")
    read = []
    for count in range(600):
        one = handler_waits.submit_sub_jobs(claim, "parts", 600, count, entries(1))
        if count in (100, 300, 599):
            with db.conn.transaction():
                read.append(living_rows_read_by(db, partial(db.run, one)))
        else:
            db.run(one)
    assert max(read) <= MOST, read
    assert db.one("select jobs from laneway.list_flows(null, 1, %s)", flow) == 601


def test_jobs_are_added_to_a_flow_beside_each_other(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    """No adder waits for one that has added up the tallies."""
    flow = edges.flow()
    for _ in range(150):
        submit(db, flow)
    with db.conn.transaction():
        for _ in range(150):
            submit(db, flow)
        other.do("set lock_timeout = '5s'")
        for _ in range(150):
            submit(other, flow)
        assert other.one("select laneway.fold_tallies(1000)") >= 0
    assert db.one("select jobs from laneway.list_flows(null, 1, %s)", flow) == 450
    while db.one("select laneway.fold_tallies(1000)"):
        pass
    assert db.one("select jobs from laneway.flows") == 450


def test_sums_of_a_flow_stay_right_while_jobs_end_and_are_added(
    db: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    seqs: list[int] = []
    for n in range(200):
        seqs.append(edges.submit(flow=flow, after=seqs[-1:]))
        if n % 50 == 0:
            edges.end(seqs[n // 50])
    found = "select jobs, completed from laneway.list_flows(null, 1, %s)"
    assert db.one(found, flow) == (200, 4)
    while db.one("select laneway.fold_tallies(1000)"):
        pass
    assert db.one("select jobs, edges, completed from laneway.flows") == (200, 199, 4)


def test_bound_of_a_flow_is_exact_within_one_transaction(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    db.do("update laneway.flows set jobs = 99990 where id = %s", flow)
    with db.conn.transaction():
        add(db, flow, 9)
        # A savepoint that is rolled back counts for nothing.
        with db.conn.transaction(force_rollback=True):
            submit(db, flow)
        submit(db, flow)
        with pytest.raises(Exception, match="at most 100000 jobs"), db.conn.transaction():
            submit(db, flow)
    assert db.one("select jobs from laneway.list_flows(null, 1, %s)", flow) == 100_000


def test_repeatable_read_transaction_adds_to_a_flow(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    for _ in range(100):
        submit(db, flow)
    other.begin()
    other.do("set transaction isolation level repeatable read")
    other.one("select count(*) from laneway.flow_tallies")
    # These add up the tallies that the other still sees.
    for _ in range(100):
        submit(db, flow)
    submit(other, flow)
    other.commit()
    assert db.one("select jobs from laneway.list_flows(null, 1, %s)", flow) == 201


def test_edges_beyond_the_bound_of_a_flow_are_refused(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    parents = [edges.submit(flow=flow) for _ in range(2)]
    db.do("update laneway.flows set edges = 99999 where id = %s", flow)
    with pytest.raises(Exception, match=r"at most 100000 jobs and 100000 edges.*100001"):
        edges.submit(flow=flow, after=parents)
