"""The cost of edges is flat: an end touches its own edges, and nothing of other flows.

Rows are counted as in test_plans.py, with plans made while the tables were tiny.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from laneway.store import edges as statements
from laneway.store import flows, health, lanes, parents
from tests.conftest import Server
from tests.store.edges import Edges
from tests.store.test_plans import Spent, counters, spent
from tests.support.store_client import StoreClient

pytestmark = pytest.mark.usefixtures("new_sessions")

MANY = 100_000
TABLES = ("open_edges", "countdowns", "waiting", "links", "flows", "arrivals", "jobs", "outcome")
ALONE = "".join(
    f"alter table laneway.{table} set (autovacuum_enabled = off);"
    for table in (*TABLES, "ready", "lease")
)
# Far above the numbers of the jobs of the tests.
FILL = f"""
insert into laneway.jobs (seq, id, job_type, payload, flow)
select g, gen_random_uuid(), 'other', '{{}}', 1000000 + g / 100
  from generate_series(1000000, {1_000_000 + MANY}) g;
insert into laneway.links (seq, flow, parents)
select g, 1000000 + g / 100, array[g - 1] from generate_series(1000000, {1_000_000 + MANY}) g;
insert into laneway.open_edges
select g - 1, g, 'cancel' from generate_series(1000001, {1_000_000 + MANY}) g;
insert into laneway.countdowns select g, 1 from generate_series(1000001, {1_000_000 + MANY}) g;
insert into laneway.waiting (seq, job_type, rank, reason)
select g, 'other', 0, 'jobs' from generate_series(1000001, {1_000_000 + MANY}) g;
"""


def go_round(edges: Edges) -> None:
    """Every statement of edges often enough that the session keeps its plans."""
    for _ in range(7):
        seqs = edges.submit_batch([None, {"after": [0]}, {"after": [0, 1]}], flow=edges.flow())
        for seq in seqs:
            edges.end(seq)
        parent = edges.submit()
        child = edges.submit(after=[parent])
        edges.end(parent, kind="giveup")
        edges.db.retry(child)
        edges.db.cancel(child)
        edges.db.run(lanes.peek(["t"]))


@pytest.fixture(scope="module")
def db(postgres: Server, template_db: str) -> Iterator[StoreClient]:
    with postgres.database(template_db) as dsn, StoreClient(dsn, prepare_threshold=0) as early:
        with StoreClient(dsn) as loader:
            loader.do(ALONE)
        early.do("vacuum analyze")
        go_round(Edges(early))
        with StoreClient(dsn) as loader:
            loader.do(FILL)
        yield early


def total(used: object, *tables: str) -> int:
    return sum(used[table] for table in tables)  # type: ignore[index]


def test_end_reads_its_own_edges_and_children(db: StoreClient) -> None:
    edges = Edges(db)
    parents = [edges.submit() for _ in range(20)]
    child = edges.submit(after=parents)
    claims = db.claimed()
    used = spent(db, lambda: edges.settle(claims))
    assert not any(used.scans.get(table) for table in TABLES)
    assert used["open_edges"] <= 5 * len(parents)
    assert total(used, "countdowns", "waiting") <= 20
    assert used["jobs"] <= 3 * len(parents)
    edges.settle(claims)
    edges.end(child)


def test_end_without_edges_reads_one_entry_of_them(db: StoreClient) -> None:
    edges = Edges(db)
    for _ in range(20):
        edges.submit()
    claims = db.claimed()
    used = spent(db, lambda: edges.settle(claims))
    assert used["open_edges"] <= 1
    assert total(used, "countdowns", "waiting", "links", "flows", "jobs") == 0
    edges.settle(claims)


def test_submit_reads_its_parents_only(db: StoreClient) -> None:
    edges = Edges(db)
    parents = [edges.submit() for _ in range(20)]
    used = spent(db, lambda: edges.submit(after=parents))
    assert not any(used.scans.get(table) for table in TABLES)
    # The test reads the id of each parent, and submits read it again.
    assert used["jobs"] <= 4 * len(parents) + 10
    assert total(used, "ready", "lease", "waiting", "outcome") <= 3 * len(parents)
    edges.settle(db.claimed())


def test_cascade_and_retry_read_their_own_jobs(db: StoreClient) -> None:
    edges = Edges(db)
    parent = edges.submit()
    children = [edges.submit(after=[parent]) for _ in range(20)]
    edges.settle([edges.claim(parent)], "giveup")
    used = spent(db, lambda: db.run(statements.advance()))
    assert not any(used.scans.get(table) for table in TABLES)
    assert total(used, "open_edges", "waiting") <= 10 * len(children)
    edges.advance()
    used = spent(db, lambda: db.one("select laneway.retry(%s)", children[0]))
    assert not any(used.scans.get(table) for table in TABLES)
    assert total(used, "open_edges", "countdowns", "links") <= 20


def test_idle_poll_reads_no_waiting_job(db: StoreClient) -> None:
    used = spent(db, lambda: db.run(lanes.peek(["t"])))
    assert total(used, "waiting", "countdowns", "open_edges") == 0


def test_explain_reads_bounded_number_of_the_jobs_before(db: StoreClient) -> None:
    child = db.submit()
    wide = "select g, %s, 'cancel' from generate_series(1000000, 1005000) g"
    db.do(f"insert into laneway.open_edges {wide}", child)
    job_id = db.id_of(child)
    db.begin()
    before = counters(db)
    found = db.run(parents.read(job_id))
    used = Spent(before, counters(db))
    db.commit()
    assert found is not None
    assert found.missing == 5001
    assert used["jobs"] <= 1100


def test_explain_follows_edges_by_index_whatever_the_statistics(db: StoreClient) -> None:
    # As they are while a few jobs wait for many.
    wide, child = db.submit(), db.submit()
    db.begin()
    db.do("delete from laneway.open_edges")
    for waiting, first, last in ((wide, 1000000, 1050000), (child, 2000000, 2000002)):
        wide_in = "select g, %s, 'cancel' from generate_series(%s::bigint, %s) g"
        db.do(f"insert into laneway.open_edges {wide_in}", waiting, first, last)
    db.do("analyze laneway.open_edges")
    db.do("delete from laneway.open_edges where child = %s", wide)
    db.do(
        "insert into laneway.open_edges select g - 1, g, 'cancel'"
        " from generate_series(3000001, %s) g",
        3_000_000 + MANY,
    )
    before = counters(db)
    found = db.run(parents.read(db.id_of(child)))
    used = Spent(before, counters(db))
    db.rollback()
    assert found is not None
    assert found.missing == 3
    assert used["open_edges"] <= 100


def test_check_of_waiting_jobs_reads_its_own_part(db: StoreClient) -> None:
    used = spent(db, lambda: db.run(health.find_stuck_waits(look=100)))
    assert total(used, *TABLES) <= 1000


def test_waiting_jobs_are_counted_up_to_the_bound(db: StoreClient) -> None:
    used = spent(db, lambda: db.run(flows.count_open(bound=500)))
    assert not any(used.scans.get(table) for table in TABLES)
    assert used["waiting"] <= 600
    assert used["flows"] <= 10
