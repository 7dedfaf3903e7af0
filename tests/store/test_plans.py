"""Cost is flat: what a statement touches follows from what it asks for, not from what waits.

Rows are counted by the server inside the transaction of the call: `fetched` sums rows fetched
through indexes and rows read by sequential scans. The statistics are wrong on purpose: plans made
while the tables were tiny, tables never analysed, tables with statistics of empty ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from laneway.domain.actor import Actor
from laneway.domain.claim import Claim
from laneway.domain.filter import JobFilter
from laneway.domain.job import NewJob, new_job_id
from laneway.domain.permissions import Reach, Term
from laneway.domain.states import Status
from laneway.store import grouped_submit, jobs, lanes, leases, stats
from laneway.store.leases import LogEntry, Report, Verdict
from tests.conftest import Server
from tests.support.dead_rows import wait_for_older_transactions
from tests.support.store_client import StoreClient, whole

pytestmark = pytest.mark.usefixtures("new_sessions")

TYPES = [f"type{i}" for i in range(10)]
LAST = TYPES[-1]
# Rows are counted, not timed: more of them would show no more.
MANY = 200_000
LEASES = 20_000
KEYS = 50_000
# Of jobs that wait for ten keys.
PARKED = 100_000
# Every n-th job has an owner.
OWN = 2_000
BATCH = 300
RANGES = 2 * len(TYPES)
# Index entries at the head of a range that rolled-back tests left.
DEAD = 8000
PROBE = 2 * -(-BATCH // len(TYPES)) + 16
COUNTERS = """
select s.relname, coalesce(s.seq_scan, 0),
       coalesce(s.seq_tup_read, 0) + greatest(coalesce(s.idx_tup_fetch, 0),
           (select coalesce(sum(pg_stat_get_xact_tuples_returned(i.indexrelid)), 0)::bigint
              from pg_index i where i.indrelid = s.relid))
  from pg_stat_xact_user_tables s where s.schemaname = 'laneway'
"""
BIG = {"ready", "jobs", "lease", "delayed", "job_keys", "key_waiters"}
# Before the first plan: altering a table later would invalidate all its plans.
ALONE = """
alter table laneway.ready set (autovacuum_enabled = off);
alter table laneway.jobs set (autovacuum_enabled = off);
alter table laneway.delayed set (autovacuum_enabled = off);
alter table laneway.lease set (autovacuum_enabled = off);
alter table laneway.job_keys set (autovacuum_enabled = off);
alter table laneway.key_waiters set (autovacuum_enabled = off);
"""
# Numbers that no test uses, so that jobs of this file never collide with them.
FILL = f"""
insert into laneway.delayed (seq, job_type, rank, run_at)
select g, 'type' || mod(g, 10), 0, clock_timestamp() + interval '1 day'
  from generate_series(1, {MANY}) g;
insert into laneway.jobs (seq, id, job_type, payload, created_by)
select g, ('00000000-0000-0000-0000-' || lpad(to_hex(g), 12, '0'))::uuid,
       'type' || mod(g / {MANY * 11 // 100}, 10), '{{}}',
       case when mod(g, {OWN}) = 0 then 'ann' when mod(g, 2) = 0 then 'bob' end
  from generate_series({MANY + 1}, {2 * MANY + LEASES}) g;
insert into laneway.ready (seq, job_type, rank)
select seq, job_type, 0 from laneway.jobs where seq between {MANY + 1} and {2 * MANY};
insert into laneway.lease (seq, attempt, worker_id, lane, job_type, workspace, rank, retries,
                           max_retries, keyed, lease_seconds, claimed_at, lease_until)
select g, 1, gen_random_uuid(), 'default', 'type0', 'default', 0, 0, 3, false, 30, now(),
       now() + interval '1 h'
  from generate_series({2 * MANY + 1}, {2 * MANY + LEASES}) g;
insert into laneway.job_keys
select 'default', 'type0', g::text, g from generate_series(1, {KEYS}) g;
insert into laneway.key_waiters
select g, 'default', 'busy ' || mod(g, 10), 0, '{LAST}', 0, 0, false, now()
  from generate_series(1, {PARKED}) g;
insert into laneway.key_holders
select 'default', 'busy ' || g, {2 * MANY + 1} + g from generate_series(0, 9) g;
select setval('laneway.jobs_seq_seq', {3 * MANY})
"""
SAY_EMPTY = """
update pg_class set reltuples = 0, relpages = greatest(pg_relation_size(oid) / 8192, 1)
 where relnamespace = 'laneway'::regnamespace and relkind = 'r'
"""


class Spent:
    """The rows that one call touched, per table."""

    def __init__(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        nothing = (0, 0)
        self.fetched = {t: after[t][1] - before.get(t, nothing)[1] for t in after}
        self.scans = {t: after[t][0] - before.get(t, nothing)[0] for t in after}

    def __getitem__(self, table: str) -> int:
        return int(self.fetched.get(table, 0))


def counters(db: StoreClient) -> dict[str, Any]:
    return {name: (scans, fetched) for name, scans, fetched in db.rows(COUNTERS)}


def spent(db: StoreClient, call: Callable[[], object]) -> Spent:
    """Run the call in a separate transaction and roll it back."""
    db.begin()
    try:
        before = counters(db)
        call()
        used = Spent(before, counters(db))
    finally:
        db.rollback()
    scanned = {t for t in BIG if used.scans.get(t)}
    assert not scanned, f"sequential scan of {scanned}"
    return used


def new_request() -> grouped_submit.Request:
    return NewJob(id=new_job_id(), job_type="shared"), Actor("me"), None


def go_round(db: StoreClient) -> None:
    """One job through every hot statement, so that this session has all its plans."""
    for _ in range(6):
        seq = db.submit(LAST, unique_key="k", concurrency_key="c")
        blocked = db.submit(LAST, concurrency_key="c")
        (claim,) = db.claimed(2, [LAST])
        assert claim.seq == seq
        assert db.run(leases.park([LAST], 10)) == 0
        db.heartbeat([claim])
        db.report([Report(claim, done=1)], [LogEntry(claim, 1, "info", "m", 0)])
        db.settle(claim, "fail", delay_s=0)
        db.run(jobs.reprioritize(claim.job_id, 1))
        db.cancel(seq)
        db.retry(seq)
        claims = db.claimed(2, [LAST])
        assert [c.seq for c in claims] == [seq]
        db.settle(claims[0], "finish")
        (claim,) = db.claimed(2, [LAST])
        assert claim.seq == blocked
        db.settle(claim, "finish")
        db.run(lanes.peek(TYPES))
        (shared,) = db.run(grouped_submit.submit([new_request()]))
        db.run(jobs.cancel(shared.id, "me", None))
        for ended in (claim.job_id, claims[0].job_id, shared.id):
            db.run(jobs.delete(ended))


@pytest.fixture(scope="module")
def filled(postgres: Server, template_db: str) -> Iterator[tuple[str, StoreClient]]:
    """Hundreds of thousands of waiting jobs, and a session whose plans are older than they are."""
    with postgres.database(template_db) as dsn, StoreClient(dsn, prepare_threshold=0) as early:
        with StoreClient(dsn) as loader:
            loader.do(ALONE)
        early.do("vacuum analyze")
        go_round(early)
        wait_for_older_transactions(early)
        # A scan marks the entries of the dead rows; a vacuum would end all plans.
        assert early.claimed(1, TYPES) == []
        with StoreClient(dsn) as loader:
            loader.do(FILL)
        yield dsn, early


@pytest.fixture(params=["planned while tiny", "never analysed", "statistics of empty tables"])
def db(request: pytest.FixtureRequest, filled: tuple[str, StoreClient]) -> Iterator[StoreClient]:
    dsn, early = filled
    if request.param == "planned while tiny":
        yield early
        return
    with StoreClient(dsn, prepare_threshold=0) as late:
        late.do("begin")
        if request.param == "statistics of empty tables":
            late.do(SAY_EMPTY)
        late.do("commit")
        yield late
        late.do("update pg_class set reltuples = -1 where relnamespace = 'laneway'::regnamespace")


def test_claim_over_ten_types_reads_a_few_rows_per_range_and_its_own_jobs(
    db: StoreClient,
) -> None:
    used = spent(db, lambda: db.claim(BATCH, TYPES))
    assert used["ready"] <= RANGES * PROBE
    assert used["jobs"] <= BATCH
    assert used["delayed"] == 0
    assert used["lease"] == 0


def test_claim_of_one_job_reads_one_row_per_range(db: StoreClient) -> None:
    used = spent(db, lambda: db.claim(1, TYPES))
    assert used["ready"] <= RANGES
    assert used["jobs"] <= 1


def test_worker_that_knows_one_type_out_of_ten_reads_nothing_of_the_others(
    db: StoreClient,
) -> None:
    used = spent(db, lambda: db.claim(BATCH, [LAST]))
    assert used["ready"] <= 2 * BATCH
    assert used["jobs"] <= BATCH


def test_claim_of_types_that_have_no_jobs_reads_next_to_nothing(db: StoreClient) -> None:
    used = spent(db, lambda: db.claim(BATCH, ["absent", "never"]))
    assert used["ready"] <= 4


def test_claim_from_floor_does_not_read_rows_below(db: StoreClient) -> None:
    below = 2 * MANY - 100
    ranges = [r._replace(lo=0, floor=below) if r.fresh else r for r in whole(LAST)]
    used = spent(db, lambda: db.claim(BATCH, ranges=ranges))
    assert used["ready"] <= BATCH


def limited(db: StoreClient, most: int) -> None:
    """Let all types but the last share a limit, in the transaction that is rolled back."""
    db.do("insert into laneway.limits (name, max_concurrent) values ('x', %s)", most)
    db.do(
        "insert into laneway.job_types (name, limits) select unnest(%s::text[]), '{x}'", TYPES[:-1]
    )


def test_claim_reads_no_rows_of_exhausted_limit(db: StoreClient) -> None:
    def claim() -> None:
        limited(db, 0)
        answer = db.claim(BATCH, TYPES)
        assert {one.job_type for one in answer.assignments} == {LAST}
        assert (answer.limited, db.claim(BATCH, TYPES[:-1]).state) == (True, "limited")

    used = spent(db, claim)
    assert used["ready"] <= 2 * PROBE + DEAD
    assert used["jobs"] <= BATCH


def test_claim_reads_no_more_of_a_type_than_its_limit_has_room_for(db: StoreClient) -> None:
    def claim() -> None:
        limited(db, 3)
        assert len(db.claimed(BATCH, TYPES[:-1])) == 3

    used = spent(db, claim)
    assert used["ready"] <= 3 * RANGES + DEAD
    assert used["jobs"] <= 3


def test_key_costs_a_few_rows_however_many_wait_for_it(db: StoreClient) -> None:
    def go_through() -> None:
        db.do("delete from laneway.key_holders where concurrency_key ~ '^busy'")
        mine = [db.submit(LAST, concurrency_key=f"busy {i}", priority=9) for i in range(10)]
        met = [db.submit(LAST, concurrency_key=f"busy {i}", priority=9) for i in range(10)]
        before = counters(db)
        claims = db.claimed(20, [LAST])
        assert [c.seq for c in claims] == mine
        assert [db.places(seq) for seq in met[:2]] == [["key_waiters"]] * 2
        answers = db.run(leases.settle([Verdict(c, "finish") for c in claims]))
        assert sorted(a.seq for a in answers if a.answer == "promoted") == met
        after = Spent(before, counters(db))
        assert after["key_waiters"] <= 6 * 20
        assert after["key_holders"] <= 20 * 20
        assert after["jobs"] <= 4 * 20

    spent(db, go_through)


def test_parking_reads_at_most_given_number_of_rows(db: StoreClient) -> None:
    def park() -> None:
        # One after the other: no plan for this may depend on the statistics that lie.
        head = db.rows(
            "select seq from laneway.ready where job_type = %s order by fresh, rank, seq limit 200",
            LAST,
        )
        for (seq,) in head:
            db.do("update laneway.jobs set concurrency_key = 'busy 1' where seq = %s", seq)
        before = counters(db)
        assert db.run(leases.park([LAST], 300)) == 200
        after = Spent(before, counters(db))
        # Read, found again and deleted.
        assert after["ready"] <= 3 * 300 + DEAD
        # With the older versions that the change above left.
        assert after["jobs"] <= 3 * 300
        assert after["key_waiters"] == 0

    spent(db, park)


def test_sweeping_keys_reads_a_row_per_key(db: StoreClient) -> None:
    def sweep() -> None:
        db.do("delete from laneway.key_holders where concurrency_key = 'busy 7'")
        assert db.one("select laneway.sweep_keys()") == 1

    used = spent(db, sweep)
    assert used["key_waiters"] <= 5 * 11 + DEAD


@pytest.mark.parametrize("kind", ["finish", "fail", "giveup", "release", "snooze", "cancel"])
def test_settle_reads_its_leases_and_no_more(db: StoreClient, kind: str) -> None:
    claims = _leased(db, BATCH)
    used = spent(db, lambda: db.run(leases.settle([Verdict(c, kind) for c in claims])))
    assert used["lease"] <= 2 * BATCH
    assert used["jobs"] == 0, "no job of the batch has a key"
    assert used["job_keys"] == 0


# The general way and the answer read each lease; a batch of finishes tries the short way before.
@pytest.mark.parametrize("kind, reads", [("finish", 3), ("fail", 2), ("release", 2)])
def test_settle_of_stale_attempts_reads_a_few_rows_each(
    db: StoreClient, kind: str, reads: int
) -> None:
    claims = [Claim(c.seq, c.job_id, 9) for c in _leased(db, BATCH)]
    used = spent(db, lambda: db.run(leases.settle([Verdict(c, kind) for c in claims])))
    assert used["lease"] <= reads * BATCH
    assert used["outcome"] <= BATCH
    assert used["attempts"] <= BATCH


def test_freeing_a_key_reads_that_key_only(db: StoreClient) -> None:
    def settle_keyed() -> None:
        seqs = [db.submit(LAST, unique_key=f"mine {i}", priority=9) for i in range(20)]
        claims = db.claimed(20, [LAST])
        assert [c.seq for c in claims] == seqs
        before = counters(db)
        db.run(leases.settle([Verdict(c, "finish") for c in claims]))
        after = Spent(before, counters(db))
        assert after["job_keys"] <= 2 * 20
        assert after["jobs"] <= 2 * 20

    used = spent(db, settle_keyed)
    assert used["job_keys"] <= 6 * 20


def test_heartbeat_reads_its_leases_and_no_more(db: StoreClient) -> None:
    claims = _leased(db, 500)
    claims[7] = Claim(claims[7].seq, claims[7].job_id, 9)
    used = spent(db, lambda: db.heartbeat(claims))
    assert used["lease"] <= 2 * 500 + DEAD


def test_report_reads_its_leases_and_no_more(db: StoreClient) -> None:
    claims = _leased(db, BATCH)
    claims[7] = Claim(claims[7].seq, claims[7].job_id, 9)
    lines = [LogEntry(c, n, "info", "m", 0) for c in claims for n in (1, 2)]
    reports = [Report(c, done=1, checkpoint="{}") for c in claims]
    used = spent(db, lambda: db.report(reports, lines))
    # Locked, updated and read again; older versions of a row are read on the way.
    assert used["lease"] <= 4 * BATCH
    assert used["progress"] <= 2 * BATCH


def test_poll_reads_one_row_per_type_and_the_next_delayed_one(db: StoreClient) -> None:
    used = spent(db, lambda: db.run(lanes.peek(TYPES)))
    assert used["ready"] <= len(TYPES) + DEAD
    assert used["delayed"] <= 3 + DEAD


def test_poll_that_finds_many_due_moves_a_bounded_number(db: StoreClient) -> None:
    def poll() -> None:
        db.do("update laneway.delayed set run_at = clock_timestamp() where seq <= 3000")
        before = counters(db)
        peek = db.run(lanes.peek(TYPES))
        after = Spent(before, counters(db))
        assert peek.next_due_s == 0, "there is more: poll again"
        assert after["delayed"] <= 2 * 1000 + 3000 + DEAD
        assert after["ready"] <= len(TYPES) + DEAD

    spent(db, poll)


def test_operators_verbs_read_a_handful_of_rows(db: StoreClient) -> None:
    def verbs() -> None:
        seq = db.submit(LAST, unique_key="verbs")
        assert db.submit(LAST, unique_key="verbs") == seq
        db.run(jobs.get(db.id_of(seq)))
        db.run(jobs.wait(db.id_of(seq)))
        db.run(jobs.reprioritize(db.id_of(seq), 5))
        db.cancel(seq)
        db.retry(seq)
        db.cancel(seq)
        db.run(jobs.delete(db.id_of(seq)))

    used = spent(db, verbs)
    assert sum(used[t] for t in BIG) <= 100


@pytest.mark.parametrize("status", [None, *Status])
def test_page_of_a_list_reads_a_few_rows_per_job_shown(
    filled: tuple[str, StoreClient], status: Status | None
) -> None:
    wanted = JobFilter(status=status)
    with StoreClient(filled[0], prepare_threshold=0) as db:
        for _ in range(7):  # past the point where the server may keep a plan for any parameters
            db.run(jobs.listing(wanted, limit=50))
        used = spent(db, lambda: db.run(jobs.listing(wanted, limit=50)))
    assert sum(used[t] for t in BIG) <= 20 * 50


@pytest.mark.parametrize("status", [None, *Status])
def test_page_of_own_jobs_reads_no_others(
    filled: tuple[str, StoreClient], status: Status | None
) -> None:
    mine = JobFilter(status=status, within=Reach((Term(owner="ann"),)))
    with StoreClient(filled[0], prepare_threshold=0) as db:
        for _ in range(7):
            db.run(jobs.listing(mine, limit=50))
        used = spent(db, lambda: db.run(jobs.listing(mine, limit=50)))
    own = (MANY + LEASES) // OWN
    assert sum(used[t] for t in BIG) <= 2 * own + 20 * 50


def test_submits_that_share_a_commit_read_no_jobs_but_their_own(db: StoreClient) -> None:
    new = [new_request() for _ in range(24)]
    used = spent(db, lambda: db.run(grouped_submit.submit(new)))
    assert sum(used[t] for t in BIG) <= 10 * len(new)


def test_measuring_the_lanes_stops_counting_at_its_bound(db: StoreClient) -> None:
    used = spent(db, lambda: db.run(lanes.measure(bound=500)))
    assert used["ready"] <= len(TYPES) * (500 + 1 + 1000) + 50 + DEAD


def test_chart_reads_a_bounded_number_of_ends_and_the_jobs_they_are_of(db: StoreClient) -> None:
    chart = stats.count_ends(
        window_s=3600, bucket_s=60, lanes=None, job_type=None, bound=100, points=10
    )

    def look() -> None:
        db.do(
            "insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt,"
            " retries, lane, claimed_at)"
            " select g, 'completed', 'default', 'type0', 0, 1, 0, 'default', clock_timestamp()"
            f" from generate_series({MANY + 1}, {MANY + 1000}) g"
        )
        before = counters(db)
        assert db.run(chart).is_capped
        after = Spent(before, counters(db))
        assert after["jobs"] <= 100
        assert after["lease"] <= 100 + DEAD

    spent(db, look)


ENDED = """
insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries, lane)
select g, case when g = {0} then 'failed' else 'completed' end, 'w' || mod(g, 3), 'type0', 0, 1, 0,
       'default'
  from generate_series({0}, {0} + 5000) g
""".format(MANY + 1)
CHOICES = {
    "whole": JobFilter(),
    "of a type": JobFilter(job_type=LAST),
    "own": JobFilter(within=Reach((Term(owner="ann"),))),
    "mixed": JobFilter(within=Reach((Term(workspace="w1"), Term(owner="ann")))),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_counting_states_looks_at_a_bounded_number_of_jobs_of_each(
    db: StoreClient, choice: str
) -> None:
    bound = 100
    wanted = CHOICES[choice]
    count = jobs.count_states(wanted, bound=bound)

    def look() -> None:
        db.do(ENDED)
        # The first look marks the dead entries that earlier tests left; the next skips them.
        db.run(count)
        before = counters(db)
        found = {each.status: each for each in db.run(count)}
        after = Spent(before, counters(db))
        assert after["outcome"] < 5000
        for table in BIG - {"jobs"}:
            assert after[table] <= 5 * (bound + 1) + DEAD, table
        # A handful of places to look for each of the seven states.
        assert after["jobs"] <= (12 * (bound + 1) if wanted.within else 0)
        if choice == "whole":
            assert (found[Status.COMPLETED].count, found[Status.FAILED].count) == (bound, 1)
            assert found[Status.APPROVED].is_capped
            assert not found[Status.FAILED].is_capped

    spent(db, look)


def test_counting_asks_for_the_lane_of_jobs_that_are_alike_once(db: StoreClient) -> None:
    wanted = JobFilter(within=Reach((Term(lanes=frozenset({"default"})),)))

    def look() -> None:
        db.do("update laneway.jobs set created_by = 'p' || seq where seq = any (array("
                "select w.seq from laneway.ready w where w.job_type = 'type0'"
                " order by w.rank, w.seq limit 200))")  # fmt: skip
        before = counters(db)
        db.run(jobs.count_states(wanted, bound=100))
        after = Spent(before, counters(db))
        assert after.scans["worker_lanes"] <= 4 * len(TYPES)

    spent(db, look)


def test_oldest_own_jobs_are_found_without_reading_others(
    filled: tuple[str, StoreClient],
) -> None:
    mine = jobs.awaiting(JobFilter(within=Reach((Term(owner="ann"),))), limit=50)
    with StoreClient(filled[0], prepare_threshold=0) as db:

        def look() -> None:
            db.do("insert into laneway.awaiting (seq, job_type, workspace, rank, expires_at)"
                    " select g, 'type0', 'default', 0, now() + interval '1 day'"
                    " from generate_series(1, 5000) g")  # fmt: skip
            for _ in range(7):
                db.run(mine)
            before = counters(db)
            db.run(mine)
            after = Spent(before, counters(db))
            own = (MANY + LEASES) // OWN
            assert after["awaiting"] <= own
            assert after["jobs"] <= 2 * own

        spent(db, look)


def test_measuring_one_lane_stops_counting_at_its_bound(db: StoreClient) -> None:
    used = spent(db, lambda: db.run(lanes.measure_lane("default", bound=500)))
    # Ten types of one priority each: a step per type, a count and the head of each.
    assert used["ready"] <= len(TYPES) * (500 + 1 + 100 + 8) + DEAD


def test_failures_are_counted_from_a_bounded_number_of_them(db: StoreClient) -> None:
    db.do("vacuum laneway.outcome")  # of rows that an earlier test rolled back

    def look() -> None:
        db.do(ENDED.replace("'completed'", "'failed'"))
        before = counters(db)
        asked = stats.count_failures(window_s=60, lanes=None, job_type=None, bound=100, limit=10)
        assert db.run(asked).is_capped
        # Each by the index and by its number; and three workspaces, one step each.
        assert Spent(before, counters(db))["outcome"] <= 2 * 100 + 10

    spent(db, look)


def _leased(db: StoreClient, count: int) -> list[Claim]:
    """Claims on some of the many leases, from the middle."""
    first = 2 * MANY + LEASES // 2
    rows = db.rows(
        "select seq, id from laneway.jobs where seq >= %s order by seq limit %s", first, count
    )
    return [Claim(seq, job_id, 1) for seq, job_id in rows]
