"""Claims: one owner, in order, never more than the room."""

from __future__ import annotations

import random
from collections import Counter
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laneway.store import jobs, lanes
from laneway.store.leases import MAX_RANK, MIN_RANK, Range
from tests.support.store_client import StoreClient, error, whole


def test_claim_takes_the_highest_priority_first_then_the_first_submitted(db: StoreClient) -> None:
    low = [db.submit() for _ in range(3)]
    high = [db.submit(priority=5) for _ in range(3)]
    lowest = db.submit(priority=-7)
    assert [c.seq for c in db.claimed(4)] == [*high, low[0]]
    assert [c.seq for c in db.claimed()] == [*low[1:], lowest]
    assert db.claimed() == []


def test_rows_that_come_back_stand_where_their_priority_and_number_put_them(
    db: StoreClient,
) -> None:
    retried, first, delayed, second, raised = (
        db.submit(),
        db.submit(),
        db.submit(delay=3600),
        db.submit(),
        db.submit(),
    )
    (claim,) = db.claimed(1)
    assert claim.seq == retried
    db.settle(claim, "fail", error=error(), delay_s=0)
    db.do("update laneway.delayed set run_at = clock_timestamp() where seq = %s", delayed)
    assert db.run(lanes.peek(["t"])).promoted == ["t"]
    db.run(jobs.reprioritize(db.id_of(raised), 1))
    assert [c.seq for c in db.claimed()] == [raised, retried, first, delayed, second]


def test_claim_raises_the_attempt_and_writes_the_lease_that_was_answered(db: StoreClient) -> None:
    db.do("update laneway.worker_lanes set lease_seconds = 77 where name = 'default'")
    seq = db.submit(priority=4, max_retries=9, workspace="w", unique_key="k", payload={"a": 1})
    answer = db.claim()
    (got,) = answer.assignments
    assert (answer.state, answer.lease_s, answer.left_over) == ("ok", 77, 0)
    assert (got.claim.seq, got.claim.job_id, got.claim.attempt) == (seq, db.id_of(seq), 1)
    assert (got.rank, got.job_type, got.payload, got.checkpoint, got.retries) == (
        -4,
        "t",
        '{"a": 1}',
        None,
        0,
    )
    lease = db.row("lease", seq)
    expected = {
        "attempt": 1,
        "worker_id": db.worker,
        "lane": "default",
        "job_type": "t",
        "workspace": "w",
        "rank": -4,
        "retries": 0,
        "max_retries": 9,
        "keyed": True,
        "lease_seconds": 77,
        "started_at": None,
        "cancel_requested_at": None,
    }
    assert {name: lease[name] for name in expected} == expected
    assert (lease["lease_until"] - lease["claimed_at"]).total_seconds() == 77
    assert db.places(seq) == ["lease"]
    db.settle(got.claim, "release")
    (again,) = db.claimed()
    assert again.attempt == 2
    assert db.slots_agree()


def test_claim_never_takes_more_than_its_room(db: StoreClient) -> None:
    for _ in range(30):
        db.submit()
    for room in (0, 1, 7, 22):
        assert len(db.claimed(room)) == room
    assert db.claimed() == []
    assert db.slots_agree()


def test_claim_never_takes_more_than_the_free_slots(db: StoreClient, other: StoreClient) -> None:
    db.do("update laneway.worker_lanes set max_slots = 5 where name = 'default'")
    for _ in range(12):
        db.submit()
    first = db.claimed(3)
    second = other.claimed(10)
    assert (len(first), len(second)) == (3, 2)
    assert db.claim().state == "full"
    db.settle(first[0], "finish")
    assert len(other.claimed(10)) == 1
    db.do("update laneway.worker_lanes set max_slots = 2 where name = 'default'")
    for claim in first[1:]:
        db.settle(claim, "finish")
        assert db.claim().state == "full", "three run and two may"
    db.do("update laneway.worker_lanes set max_slots = null where name = 'default'")
    assert len(db.claimed(100)) == 6
    assert db.slots_agree()


def test_claim_that_fills_lane_reports_limited_and_no_more(db: StoreClient) -> None:
    db.do("update laneway.worker_lanes set max_slots = 5 where name = 'default'")
    for _ in range(12):
        db.submit()
    half = db.claim(3)
    assert (len(half.assignments), half.more, half.limited) == (3, True, False)
    rest = db.claim(10)
    assert (len(rest.assignments), rest.more, rest.limited) == (2, False, True)


def test_zero_slots_start_nothing(db: StoreClient) -> None:
    db.submit()
    db.do("update laneway.worker_lanes set max_slots = 0 where name = 'default'")
    assert db.claim().state == "full"


def test_each_reason_for_no_jobs_has_its_name(db: StoreClient) -> None:
    db.submit()
    version = db.version()
    assert db.claim(version=version - 1).state == "changed"
    assert db.claim(lane="no_such_lane").state == "disabled"
    db.run(lanes.pause(True, "me"))
    assert db.claim(version=version).state == "changed"
    assert db.claim().state == "paused"
    db.run(lanes.pause(False, "me"))
    db.do("update laneway.worker_lanes set enabled = false where name = 'default'")
    assert db.claim().state == "disabled"
    db.do("update laneway.worker_lanes set enabled = true where name = 'default'")
    assert len(db.claim().assignments) == 1
    assert db.claim().state == "ok"


def test_worker_leaves_the_types_it_does_not_know_alone(db: StoreClient) -> None:
    unknown = [db.submit("other", priority=9) for _ in range(3)]
    mine = db.submit("mine")
    assert [c.seq for c in db.claimed(types=["mine"])] == [mine]
    assert all(db.places(seq) == ["ready"] for seq in unknown)
    assert db.claimed(types=["mine", "never_seen"]) == []


def test_delayed_jobs_are_not_claimed_before_they_are_due(db: StoreClient) -> None:
    seq = db.submit(delay=3600)
    peek = db.run(lanes.peek(["t"]))
    assert (peek.due, peek.promoted) == ([], None)
    assert peek.next_due_s == pytest.approx(3600, abs=60)
    assert db.claimed() == []
    db.do("update laneway.delayed set run_at = clock_timestamp() - interval '1 s'")
    peek = db.run(lanes.peek(["t", "u"]))
    assert (peek.due, peek.promoted, peek.next_due_s) == (["t"], ["t"], None)
    assert [c.seq for c in db.claimed()] == [seq]


def test_claim_hands_over_the_last_checkpoint(db: StoreClient) -> None:
    from laneway.store.leases import Report

    claim = db.running()
    db.report([Report(claim, checkpoint='{"page": 7}')])
    db.settle(claim, "release")
    (again,) = db.claim().assignments
    assert again.checkpoint == '{"page": 7}'


def test_rows_locked_by_another_claim_are_passed_over_not_waited_for(
    db: StoreClient, other: StoreClient
) -> None:
    first, second = db.submit(), db.submit()
    other.begin()
    assert [c.seq for c in other.claimed(1)] == [first]
    assert [c.seq for c in db.claimed(1)] == [second]
    other.rollback()
    assert [c.seq for c in db.claimed(1)] == [first]
    assert db.slots_agree()


def test_claim_that_rolls_back_leaves_job_and_slot_as_they_were(db: StoreClient) -> None:
    db.do("update laneway.worker_lanes set max_slots = 1 where name = 'default'")
    seq = db.submit()
    db.begin()
    assert db.claimed() != []
    db.rollback()
    assert db.places(seq) == ["ready"]
    assert [(c.seq, c.attempt) for c in db.claimed()] == [(seq, 1)]


# -- against a model ----------------------------------------------------------------------------


class Waiting(NamedTuple):
    seq: int
    job_type: str
    fresh: bool
    rank: int


def ideal(waiting: list[Waiting], groups: dict[str, int], caps: list[int], room: int) -> list[int]:
    """The expected claim: all jobs in order, each group up to its cap, up to the room."""
    taken: list[int] = []
    used: Counter[int] = Counter()
    for row in sorted(waiting, key=lambda w: (w.rank, w.seq)):
        if row.job_type in groups and used[groups[row.job_type]] < caps[groups[row.job_type] - 1]:
            used[groups[row.job_type]] += 1
            taken.append(row.seq)
    return taken[:room]


def probe_size(types: int, room: int) -> int:
    return room if types <= 2 else min(room, 2 * -(-room // types) + 16)


def known(waiting: list[Waiting], groups: dict[str, int], caps: list[int], room: int) -> list[int]:
    """The jobs that are certain to be next when each range is read only up to its probe."""
    size = probe_size(len(groups), room)
    edge = (MAX_RANK, 0)
    if size < room:
        for job_type, group in groups.items():
            for fresh in (False, True):
                rows = sorted(
                    (w.rank, w.seq) for w in waiting if (w.job_type, w.fresh) == (job_type, fresh)
                )
                if len(rows) >= size and caps[group - 1] >= size:
                    edge = min(edge, rows[size - 1])
    return ideal([w for w in waiting if (w.rank, w.seq) <= edge], groups, caps, room)


class Table(NamedTuple):
    """Strategies for the waiting table; lopsided ones have a type that fills its probe."""

    seed: int
    types: int
    size: int
    ranks: int
    cap: int
    room: int
    heaviest: int
    fresh: float


MIXED = st.builds(
    Table,
    st.integers(0, 2**32),
    st.integers(1, 12),
    st.integers(0, 200),
    st.integers(1, 4),
    st.sampled_from([0, 1, 3, 40, 300]),
    st.sampled_from([1, 2, 5, 17, 60, 120, 300]),
    st.just(3),
    st.just(0.6),
)
LOPSIDED = st.builds(
    Table,
    st.integers(0, 2**32),
    st.integers(4, 12),
    st.integers(120, 300),
    st.integers(1, 2),
    st.sampled_from([60, 300]),
    st.sampled_from([60, 120, 300]),
    st.just(40),
    st.sampled_from([0.1, 0.9]),
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.one_of(MIXED, LOPSIDED))
def test_any_waiting_table_is_claimed_in_order_within_rooms_and_caps(
    db: StoreClient, table: Table
) -> None:
    rng, room = random.Random(table.seed), table.room
    names = [f"m{i}" for i in range(table.types)]
    weights = [table.heaviest, *(1 for _ in names[1:])]
    waiting = [
        Waiting(
            seq,
            rng.choices(names, weights)[0],
            rng.random() < table.fresh,
            rng.randrange(-1, table.ranks),
        )
        for seq in range(1, table.size + 1)
    ]
    caps = [table.cap, rng.choice([0, 2, 25, 300]), 300]
    groups = {n: rng.randint(1, 3) for n in names if len(names) < 2 or rng.random() < 0.9}
    if not groups:
        groups = {names[0]: 3}
    db.begin()
    try:
        db.do(
            "insert into laneway.jobs (seq, id, job_type, payload)"
            " select s, gen_random_uuid(), t, '{}' from unnest(%s::bigint[], %s::text[]) u (s, t)",
            [w.seq for w in waiting],
            [w.job_type for w in waiting],
        )
        db.do(
            "insert into laneway.ready (seq, job_type, fresh, rank)"
            " select * from unnest(%s::bigint[], %s::text[], %s::boolean[], %s::integer[])",
            [w.seq for w in waiting],
            [w.job_type for w in waiting],
            [w.fresh for w in waiting],
            [w.rank for w in waiting],
        )
        ranges = [r for name, group in groups.items() for r in whole(name, group)]
        got = [c.seq for c in db.claimed(room, caps=caps, ranges=ranges)]
        best = ideal(waiting, groups, caps, room)
        assert got == best[: len(got)], "out of order"
        assert got == known(waiting, groups, caps, room)
        assert bool(got) == bool(best), "nothing taken though something could be"
        # The next claim continues where this one stopped.
        if len(got) < len(best):
            assert len(got) >= probe_size(len(groups), room)
        assert db.slots_agree()
    finally:
        db.rollback()


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 2**32))
def test_claims_in_turn_empty_the_table_and_take_each_job_once(db: StoreClient, seed: int) -> None:
    rng = random.Random(seed)
    names = [f"m{i}" for i in range(rng.randint(1, 6))]
    db.begin()
    try:
        for _ in range(40):
            db.submit(rng.choice(names), priority=rng.randint(-2, 2))
        taken: list[int] = []
        while got := db.claimed(rng.choice([1, 3, 19, 30]), names):
            taken += [c.seq for c in got]
        assert len(taken) == len(set(taken)) == 40
        assert db.one("select count(*) from laneway.ready") == 0
        assert db.slots_agree()
    finally:
        db.rollback()


def test_range_starts_after_its_floor_and_ends_at_its_last_rank(db: StoreClient) -> None:
    rows = {(p, i): db.submit(priority=p) for p in (2, 1, 0) for i in range(3)}
    ranges = [Range("t", 1, True, -1, rows[1, 0], 0)]
    got = [c.seq for c in db.claimed(ranges=ranges)]
    assert got == [rows[1, 1], rows[1, 2], rows[0, 0], rows[0, 1], rows[0, 2]]
    assert db.claimed(ranges=[Range("t", 1, True, MIN_RANK, 0, -3)]) == []
