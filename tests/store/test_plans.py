"""Cost is flat: what a statement touches follows from what it asks for, not from what waits.

Rows are counted by the server inside the transaction of the call: `fetched` sums rows fetched
through indexes and rows read by sequential scans. The statistics are wrong on purpose: plans made
while the tables were tiny, tables never analysed, tables said to be empty.
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
from tests.store.desk import Desk, whole

TYPES = [f"type{i}" for i in range(10)]
LAST = TYPES[-1]
# Rows are counted, not timed: more of them would show no more.
MANY = 200_000
LEASES = 20_000
KEYS = 50_000
# Of jobs that wait for ten keys.
PARKED = 100_000
# Every so many-th job is somebody's own.
OWN = 2_000
BATCH = 300
RANGES = 2 * len(TYPES)
# Index entries that rolled-back tests before this one left at the head of a range.
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
# Before the first plan: a table that is altered afterwards would have all its plans made anew.
ALONE = """
alter table laneway.ready set (autovacuum_enabled = off);
alter table laneway.jobs set (autovacuum_enabled = off);
alter table laneway.delayed set (autovacuum_enabled = off);
alter table laneway.lease set (autovacuum_enabled = off);
alter table laneway.job_keys set (autovacuum_enabled = off);
alter table laneway.key_waiters set (autovacuum_enabled = off);
"""
# Rows nobody has numbered yet, so that a job of this file never meets one of a test's own.
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
    """What one call touched, per table."""

    def __init__(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        nothing = (0, 0)
        self.fetched = {t: after[t][1] - before.get(t, nothing)[1] for t in after}
        self.scans = {t: after[t][0] - before.get(t, nothing)[0] for t in after}

    def __getitem__(self, table: str) -> int:
        return int(self.fetched.get(table, 0))


def counters(desk: Desk) -> dict[str, Any]:
    return {name: (scans, fetched) for name, scans, fetched in desk.rows(COUNTERS)}


def spent(desk: Desk, call: Callable[[], object]) -> Spent:
    """Runs the call in a transaction of its own and takes it back."""
    desk.begin()
    try:
        before = counters(desk)
        call()
        used = Spent(before, counters(desk))
    finally:
        desk.rollback()
    scanned = {t for t in BIG if used.scans.get(t)}
    assert not scanned, f"sequential scan of {scanned}"
    return used


def new_request() -> grouped_submit.Request:
    return NewJob(id=new_job_id(), job_type="shared"), Actor("me"), None


def go_round(desk: Desk) -> None:
    """One job through every hot statement, so that this session has all its plans."""
    for _ in range(6):
        seq = desk.submit(LAST, unique_key="k", concurrency_key="c")
        blocked = desk.submit(LAST, concurrency_key="c")
        (claim,) = desk.claimed(2, [LAST])
        assert claim.seq == seq
        assert desk.run(leases.park([LAST], 10)) == 0
        desk.heartbeat([claim])
        desk.report([Report(claim, done=1)], [LogEntry(claim, 1, "info", "m", 0)])
        desk.settle(claim, "fail", delay_s=0)
        desk.run(jobs.reprioritize(claim.job_id, 1))
        desk.cancel(seq)
        desk.retry(seq)
        claims = desk.claimed(2, [LAST])
        assert [c.seq for c in claims] == [seq]
        desk.settle(claims[0], "finish")
        (claim,) = desk.claimed(2, [LAST])
        assert claim.seq == blocked
        desk.settle(claim, "finish")
        desk.run(lanes.peek(TYPES))
        (shared,) = desk.run(grouped_submit.submit([new_request()]))
        desk.run(jobs.cancel(shared.id, "me", None))
        for ended in (claim.job_id, claims[0].job_id, shared.id):
            desk.run(jobs.delete(ended))


@pytest.fixture(scope="module")
def filled(postgres: Server, template_db: str) -> Iterator[tuple[str, Desk]]:
    """Hundreds of thousands of waiting jobs, and a session whose plans are older than they are."""
    with postgres.database(template_db) as dsn, Desk(dsn, prepare_threshold=0) as early:
        with Desk(dsn) as loader:
            loader.do(ALONE)
        early.do("vacuum analyze")
        go_round(early)
        with Desk(dsn) as loader:
            loader.do(FILL)
        yield dsn, early


@pytest.fixture(params=["planned while tiny", "never analysed", "said to be empty"])
def desk(request: pytest.FixtureRequest, filled: tuple[str, Desk]) -> Iterator[Desk]:
    dsn, early = filled
    if request.param == "planned while tiny":
        yield early
        return
    with Desk(dsn, prepare_threshold=0) as late:
        late.do("begin")
        if request.param == "said to be empty":
            late.do(SAY_EMPTY)
        late.do("commit")
        yield late
        late.do("update pg_class set reltuples = -1 where relnamespace = 'laneway'::regnamespace")


def test_a_claim_over_ten_types_reads_a_few_rows_per_range_and_its_own_jobs(desk: Desk) -> None:
    used = spent(desk, lambda: desk.claim(BATCH, TYPES))
    assert used["ready"] <= RANGES * PROBE
    assert used["jobs"] <= BATCH
    assert used["delayed"] == 0
    assert used["lease"] == 0


def test_a_claim_of_one_job_reads_one_row_per_range(desk: Desk) -> None:
    used = spent(desk, lambda: desk.claim(1, TYPES))
    assert used["ready"] <= RANGES
    assert used["jobs"] <= 1


def test_a_worker_that_knows_one_type_out_of_ten_reads_nothing_of_the_others(desk: Desk) -> None:
    used = spent(desk, lambda: desk.claim(BATCH, [LAST]))
    assert used["ready"] <= 2 * BATCH
    assert used["jobs"] <= BATCH


def test_a_claim_of_types_that_have_no_jobs_reads_next_to_nothing(desk: Desk) -> None:
    used = spent(desk, lambda: desk.claim(BATCH, ["nobody", "never"]))
    assert used["ready"] <= 4


def test_a_claim_from_a_floor_does_not_read_what_lies_below(desk: Desk) -> None:
    below = 2 * MANY - 100
    ranges = [r._replace(lo=0, floor=below) if r.fresh else r for r in whole(LAST)]
    used = spent(desk, lambda: desk.claim(BATCH, ranges=ranges))
    assert used["ready"] <= BATCH


def limited(desk: Desk, most: int) -> None:
    """Lets all types but the last share a limit; in the transaction that is taken back."""
    desk.do("insert into laneway.limits (name, max_concurrent) values ('x', %s)", most)
    desk.do(
        "insert into laneway.job_types (name, limits) select unnest(%s::text[]), '{x}'", TYPES[:-1]
    )


def test_a_claim_reads_nothing_of_what_an_exhausted_limit_shuts(desk: Desk) -> None:
    def claim() -> None:
        limited(desk, 0)
        answer = desk.claim(BATCH, TYPES)
        assert {one.job_type for one in answer.assignments} == {LAST}
        assert (answer.limited, desk.claim(BATCH, TYPES[:-1]).state) == (True, "limited")

    used = spent(desk, claim)
    assert used["ready"] <= 2 * PROBE + DEAD
    assert used["jobs"] <= BATCH


def test_a_claim_reads_no_more_of_a_type_than_its_limit_has_room_for(desk: Desk) -> None:
    def claim() -> None:
        limited(desk, 3)
        assert len(desk.claimed(BATCH, TYPES[:-1])) == 3

    used = spent(desk, claim)
    assert used["ready"] <= 3 * RANGES + DEAD
    assert used["jobs"] <= 3


def test_a_key_costs_a_few_rows_however_many_wait_for_it(desk: Desk) -> None:
    def go_through() -> None:
        desk.do("delete from laneway.key_holders where concurrency_key ~ '^busy'")
        mine = [desk.submit(LAST, concurrency_key=f"busy {i}", priority=9) for i in range(10)]
        met = [desk.submit(LAST, concurrency_key=f"busy {i}", priority=9) for i in range(10)]
        before = counters(desk)
        claims = desk.claimed(20, [LAST])
        assert [c.seq for c in claims] == mine
        assert [desk.places(seq) for seq in met[:2]] == [["key_waiters"]] * 2
        answers = desk.run(leases.settle([Verdict(c, "finish") for c in claims]))
        assert sorted(a.seq for a in answers if a.answer == "promoted") == met
        after = Spent(before, counters(desk))
        assert after["key_waiters"] <= 6 * 20
        assert after["key_holders"] <= 20 * 20
        assert after["jobs"] <= 4 * 20

    spent(desk, go_through)


def test_parking_reads_as_many_rows_as_it_was_told_to(desk: Desk) -> None:
    def park() -> None:
        # One after the other: no plan for this may depend on the statistics that lie.
        head = desk.rows(
            "select seq from laneway.ready where job_type = %s order by fresh, rank, seq limit 200",
            LAST,
        )
        for (seq,) in head:
            desk.do("update laneway.jobs set concurrency_key = 'busy 1' where seq = %s", seq)
        before = counters(desk)
        assert desk.run(leases.park([LAST], 300)) == 200
        after = Spent(before, counters(desk))
        # Looked at, found again and deleted.
        assert after["ready"] <= 3 * 300 + DEAD
        # With the older versions that the change above left.
        assert after["jobs"] <= 3 * 300
        assert after["key_waiters"] == 0

    spent(desk, park)


def test_sweeping_keys_reads_a_row_per_key(desk: Desk) -> None:
    def sweep() -> None:
        desk.do("delete from laneway.key_holders where concurrency_key = 'busy 7'")
        assert desk.one("select laneway.sweep_keys()") == 1

    used = spent(desk, sweep)
    assert used["key_waiters"] <= 5 * 11 + DEAD


@pytest.mark.parametrize("kind", ["finish", "fail", "giveup", "release", "snooze", "cancel"])
def test_a_settle_reads_its_leases_and_no_more(desk: Desk, kind: str) -> None:
    claims = _leased(desk, BATCH)
    used = spent(desk, lambda: desk.run(leases.settle([Verdict(c, kind) for c in claims])))
    assert used["lease"] <= 2 * BATCH + DEAD
    assert used["jobs"] == 0, "no job of the batch has a key"
    assert used["job_keys"] == 0


def test_a_settle_of_stale_attempts_reads_a_few_rows_each(desk: Desk) -> None:
    claims = [Claim(c.seq, c.job_id, 9) for c in _leased(desk, BATCH)]
    used = spent(desk, lambda: desk.run(leases.settle([Verdict(c, "finish") for c in claims])))
    assert used["lease"] <= 2 * BATCH + DEAD
    assert used["outcome"] <= BATCH
    assert used["attempts"] <= BATCH


def test_freeing_a_key_reads_that_key_only(desk: Desk) -> None:
    def settle_keyed() -> None:
        seqs = [desk.submit(LAST, unique_key=f"mine {i}", priority=9) for i in range(20)]
        claims = desk.claimed(20, [LAST])
        assert [c.seq for c in claims] == seqs
        before = counters(desk)
        desk.run(leases.settle([Verdict(c, "finish") for c in claims]))
        after = Spent(before, counters(desk))
        assert after["job_keys"] <= 2 * 20
        assert after["jobs"] <= 2 * 20

    used = spent(desk, settle_keyed)
    assert used["job_keys"] <= 6 * 20


def test_a_heartbeat_reads_its_leases_and_no_more(desk: Desk) -> None:
    claims = _leased(desk, 500)
    claims[7] = Claim(claims[7].seq, claims[7].job_id, 9)
    used = spent(desk, lambda: desk.heartbeat(claims))
    assert used["lease"] <= 2 * 500 + DEAD


def test_a_report_reads_its_leases_and_no_more(desk: Desk) -> None:
    claims = _leased(desk, BATCH)
    claims[7] = Claim(claims[7].seq, claims[7].job_id, 9)
    lines = [LogEntry(c, n, "info", "m", 0) for c in claims for n in (1, 2)]
    reports = [Report(c, done=1, checkpoint="{}") for c in claims]
    used = spent(desk, lambda: desk.report(reports, lines))
    # Locked, updated and looked up again; older versions of a row are met on the way.
    assert used["lease"] <= 4 * BATCH
    assert used["progress"] <= 2 * BATCH


def test_a_poll_reads_one_row_per_type_and_the_next_delayed_one(desk: Desk) -> None:
    used = spent(desk, lambda: desk.run(lanes.peek(TYPES)))
    assert used["ready"] <= len(TYPES) + DEAD
    assert used["delayed"] <= 3 + DEAD


def test_a_poll_that_finds_many_due_moves_a_bounded_number(desk: Desk) -> None:
    def poll() -> None:
        desk.do("update laneway.delayed set run_at = clock_timestamp() where seq <= 3000")
        before = counters(desk)
        peek = desk.run(lanes.peek(TYPES))
        after = Spent(before, counters(desk))
        assert peek.next_due_s == 0, "there is more: poll again"
        assert after["delayed"] <= 2 * 1000 + 3000 + DEAD
        assert after["ready"] <= len(TYPES) + DEAD

    spent(desk, poll)


def test_the_operators_verbs_read_a_handful_of_rows(desk: Desk) -> None:
    def verbs() -> None:
        seq = desk.submit(LAST, unique_key="verbs")
        assert desk.submit(LAST, unique_key="verbs") == seq
        desk.run(jobs.get(desk.id_of(seq)))
        desk.run(jobs.wait(desk.id_of(seq)))
        desk.run(jobs.reprioritize(desk.id_of(seq), 5))
        desk.cancel(seq)
        desk.retry(seq)
        desk.cancel(seq)
        desk.run(jobs.delete(desk.id_of(seq)))

    used = spent(desk, verbs)
    assert sum(used[t] for t in BIG) <= 100


@pytest.mark.parametrize("status", [None, *Status])
def test_a_page_of_a_list_reads_a_few_rows_per_job_shown(
    filled: tuple[str, Desk], status: Status | None
) -> None:
    wanted = JobFilter(status=status)
    with Desk(filled[0], prepare_threshold=0) as desk:
        for _ in range(7):  # past the point where the server may keep a plan for any parameters
            desk.run(jobs.listing(wanted, limit=50))
        used = spent(desk, lambda: desk.run(jobs.listing(wanted, limit=50)))
    assert sum(used[t] for t in BIG) <= 20 * 50


@pytest.mark.parametrize("status", [None, *Status])
def test_a_page_of_ones_own_reads_nobody_elses_jobs(
    filled: tuple[str, Desk], status: Status | None
) -> None:
    mine = JobFilter(status=status, within=Reach((Term(owner="ann"),)))
    with Desk(filled[0], prepare_threshold=0) as desk:
        for _ in range(7):
            desk.run(jobs.listing(mine, limit=50))
        used = spent(desk, lambda: desk.run(jobs.listing(mine, limit=50)))
    own = (MANY + LEASES) // OWN
    assert sum(used[t] for t in BIG) <= 2 * own + 20 * 50


def test_submits_that_share_a_commit_read_no_jobs_but_their_own(desk: Desk) -> None:
    new = [new_request() for _ in range(24)]
    used = spent(desk, lambda: desk.run(grouped_submit.submit(new)))
    assert sum(used[t] for t in BIG) <= 10 * len(new)


def test_measuring_the_lanes_stops_counting_at_its_bound(desk: Desk) -> None:
    used = spent(desk, lambda: desk.run(lanes.measure(bound=500)))
    assert used["ready"] <= len(TYPES) * (500 + 1 + 1000) + 50 + DEAD


def test_a_chart_reads_a_bounded_number_of_ends_and_the_jobs_they_are_of(desk: Desk) -> None:
    chart = stats.count_ends(
        window_s=3600, bucket_s=60, lanes=None, job_type=None, bound=100, points=10
    )

    def look() -> None:
        desk.do(
            "insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt,"
            " retries, lane, claimed_at)"
            " select g, 'completed', 'default', 'type0', 0, 1, 0, 'default', clock_timestamp()"
            f" from generate_series({MANY + 1}, {MANY + 1000}) g"
        )
        before = counters(desk)
        assert desk.run(chart).is_capped
        after = Spent(before, counters(desk))
        assert after["jobs"] <= 100
        assert after["lease"] <= 100 + DEAD

    spent(desk, look)


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
def test_counting_states_looks_at_a_bounded_number_of_jobs_of_each(desk: Desk, choice: str) -> None:
    bound = 100
    wanted = CHOICES[choice]
    count = jobs.count_states(wanted, bound=bound)

    def look() -> None:
        desk.do(ENDED)
        # The first look marks the dead entries that earlier tests left; the next skips them.
        desk.run(count)
        before = counters(desk)
        found = {each.status: each for each in desk.run(count)}
        after = Spent(before, counters(desk))
        assert after["outcome"] < 5000
        for table in BIG - {"jobs"}:
            assert after[table] <= 5 * (bound + 1) + DEAD, table
        # A handful of places to look for each of the seven states.
        assert after["jobs"] <= (12 * (bound + 1) if wanted.within else 0)
        if choice == "whole":
            assert (found[Status.COMPLETED].count, found[Status.FAILED].count) == (bound, 1)
            assert found[Status.APPROVED].is_capped
            assert not found[Status.FAILED].is_capped

    spent(desk, look)


def test_counting_asks_for_the_lane_of_jobs_that_are_alike_once(desk: Desk) -> None:
    wanted = JobFilter(within=Reach((Term(lanes=frozenset({"default"})),)))

    def look() -> None:
        desk.do("update laneway.jobs set created_by = 'p' || seq where seq = any (array("
                "select w.seq from laneway.ready w where w.job_type = 'type0'"
                " order by w.rank, w.seq limit 200))")  # fmt: skip
        before = counters(desk)
        desk.run(jobs.count_states(wanted, bound=100))
        after = Spent(before, counters(desk))
        assert after.scans["worker_lanes"] <= 4 * len(TYPES)

    spent(desk, look)


def test_the_oldest_of_ones_own_are_found_without_reading_what_others_wait_for(
    filled: tuple[str, Desk],
) -> None:
    mine = jobs.awaiting(JobFilter(within=Reach((Term(owner="ann"),))), limit=50)
    with Desk(filled[0], prepare_threshold=0) as desk:

        def look() -> None:
            desk.do("insert into laneway.awaiting (seq, job_type, workspace, rank, expires_at)"
                    " select g, 'type0', 'default', 0, now() + interval '1 day'"
                    " from generate_series(1, 5000) g")  # fmt: skip
            for _ in range(7):
                desk.run(mine)
            before = counters(desk)
            desk.run(mine)
            after = Spent(before, counters(desk))
            own = (MANY + LEASES) // OWN
            assert after["awaiting"] <= own
            assert after["jobs"] <= 2 * own

        spent(desk, look)


def test_measuring_one_lane_stops_counting_at_its_bound(desk: Desk) -> None:
    used = spent(desk, lambda: desk.run(lanes.measure_lane("default", bound=500)))
    # Ten types of one priority each: a step per type, a count and the head of each.
    assert used["ready"] <= len(TYPES) * (500 + 1 + 100 + 8) + DEAD


def test_failures_are_counted_from_a_bounded_number_of_ends(desk: Desk) -> None:
    desk.do("vacuum laneway.outcome")  # of what a test before this one took back

    def look() -> None:
        desk.do(ENDED)
        before = counters(desk)
        asked = stats.count_failures(window_s=60, lanes=None, job_type=None, bound=100, limit=10)
        assert desk.run(asked).is_capped
        assert Spent(before, counters(desk))["outcome"] <= 2 * 100

    spent(desk, look)


def _leased(desk: Desk, count: int) -> list[Claim]:
    """Claims on some of the many leases, from the middle."""
    first = 2 * MANY + LEASES // 2
    rows = desk.rows(
        "select seq, id from laneway.jobs where seq >= %s order by seq limit %s", first, count
    )
    return [Claim(seq, job_id, 1) for seq, job_id in rows]
