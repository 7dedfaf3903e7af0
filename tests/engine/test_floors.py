"""Floors skip dead rows and never a live one, however late it commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from laneway.domain.claim import Claim
from laneway.engine.claim.floors import MAX_LEVELS, Floors, all_ranges
from laneway.store.leases import MAX_RANK, MIN_RANK, Assignment, ClaimAnswer, Range

NOBODY = UUID(int=0)


@dataclass
class Table:
    """`ready` as PostgreSQL would show it: a row has a seq when it is made, and is seen later."""

    next_seq: int = 1
    next_xid: int = 1
    waiting: dict[int, int] = field(default_factory=dict)
    # Open producers: transaction id → the rows it will commit.
    open: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def begin(self, ranks: list[int]) -> None:
        """A producer draws its numbers in its own transaction and does not commit yet."""
        xid, self.next_xid = self.next_xid, self.next_xid + 1
        self.open[xid] = []
        self.draw(xid, ranks)

    def draw(self, xid: int, ranks: list[int]) -> None:
        """A producer that has its transaction's number draws more."""
        for rank in ranks:
            self.open[xid].append((self.next_seq, rank))
            self.next_seq += 1

    def draw_late(self, pick: int) -> None:
        if self.open:
            self.draw(sorted(self.open)[pick % len(self.open)], [0])

    def commit(self, pick: int) -> None:
        if self.open:
            xid = sorted(self.open)[pick % len(self.open)]
            self.waiting.update(self.open.pop(xid))

    def horizon(self) -> int:
        """The first transaction that has drawn a number and is open."""
        return min([self.next_xid, *(xid for xid, rows in self.open.items() if rows)])

    def claim(
        self, ranges: list[Range], room: int, meanwhile: Sequence[list[int]] = ()
    ) -> ClaimAnswer:
        own, self.next_xid = self.next_xid, self.next_xid + 1
        horizon = min([own, *self.open])
        # Others begin and commit before it picks.
        for ranks in meanwhile:
            self.begin(ranks)
        if meanwhile:
            self.commit(len(self.open) - 1)
        found = sorted(
            (rank, seq)
            for seq, rank in self.waiting.items()
            if any(r.fresh and (rank, seq) > (r.lo, r.floor) and rank <= r.hi for r in ranges)
        )[:room]
        for _, seq in found:
            del self.waiting[seq]
        made = [
            Assignment(Claim(seq, NOBODY, 1), rank, "t", "{}", None, 0, True) for rank, seq in found
        ]
        return ClaimAnswer("ok", own, horizon, 0, False, 30, False, None, 0, made)


MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.lists(st.integers(-2, 2), max_size=4)),
        st.tuples(st.just("draw"), st.integers(0, 5)),
        st.tuples(st.just("commit"), st.integers(0, 5)),
        st.tuples(st.just("claim"), st.integers(1, 4)),
        st.tuples(st.just("look past"), st.none()),
        st.tuples(st.just("raced"), st.lists(st.lists(st.integers(-1, 1), min_size=1, max_size=2))),
    ),
    max_size=60,
)


@settings(max_examples=400, deadline=None)
@given(MOVES)
def test_no_claim_ever_misses_a_committed_row(moves: list[tuple[str, object]]) -> None:
    table, floors = Table(), Floors()
    for move, argument in moves:
        if move == "begin":
            assert isinstance(argument, list)
            table.begin(argument)
        elif move == "draw":
            assert isinstance(argument, int)
            table.draw_late(argument)
        elif move == "commit":
            assert isinstance(argument, int)
            table.commit(argument)
        elif move == "look past":
            floors.look_past(table.horizon())
        elif move == "claim":
            assert isinstance(argument, int)
            expected = sorted((rank, seq) for seq, rank in table.waiting.items())[:argument]
            answer = table.claim(floors.ranges("t", 1), argument)
            assert [(a.rank, a.claim.seq) for a in answer.assignments] == expected
            floors.learn(answer)
        else:
            assert isinstance(argument, list)
            floors.learn(table.claim(floors.ranges("t", 1), 2, argument))


def test_floor_rises_once_no_transaction_can_commit_below_it() -> None:
    table, floors = Table(), Floors()
    for _ in range(50):
        table.begin([0] * 10)
        table.commit(0)
    for _ in range(10):
        floors.learn(table.claim(floors.ranges("t", 1), 10))
    (fresh,) = [r for r in floors.ranges("t", 1) if r.fresh and r.hi == MAX_RANK]
    assert fresh.floor >= 80
    assert floors.heights()


def test_open_transaction_holds_the_floor_down() -> None:
    table, floors = Table(), Floors()
    table.begin([0])
    for _ in range(50):
        table.begin([0] * 10)
        table.commit(1)
    for _ in range(10):
        floors.learn(table.claim(floors.ranges("t", 1), 10))
    assert not floors.heights()
    table.commit(0)
    answer = table.claim(floors.ranges("t", 1), 1)
    assert answer.assignments[0].claim.seq == 1


def test_open_transaction_without_jobs_holds_no_floor_down() -> None:
    table, floors = Table(), Floors()
    table.begin([])
    for _ in range(500):
        table.begin([0])
        table.commit(1)
        floors.learn(table.claim(floors.ranges("t", 1), 1))
    assert floors.are_held_up
    assert not floors.heights()
    floors.look_past(table.horizon())
    table.begin([0])
    table.commit(1)
    floors.learn(table.claim(floors.ranges("t", 1), 1))
    assert not floors.are_held_up
    assert floors.heights() == [("t", 0, 499)]


def test_restored_database_is_scanned_from_the_start() -> None:
    floors, table = Floors(), Table(next_seq=1000, next_xid=1000)
    for _ in range(50):
        table.begin([0])
        table.commit(0)
        floors.learn(table.claim(floors.ranges("t", 1), 1))
    floors.look_past(table.horizon())
    assert floors.heights()
    restored = Table()
    # An open submit is not looked at twice, so the floor must not pass it.
    restored.begin([0])
    for _ in range(20):
        restored.begin([0])
        restored.commit(1)
    ranges = [Range("t", 1, True, MIN_RANK, 0, MAX_RANK)]
    for _ in range(5):
        floors.learn(restored.claim(ranges, 1))
        ranges = floors.ranges("t", 1)
    restored.commit(0)
    assert restored.claim(ranges, 1).assignments[0].claim.seq == 1


def test_after_forgetting_everything_is_looked_at_again() -> None:
    table, floors = Table(), Floors()
    for _ in range(50):
        table.begin([0])
        table.commit(0)
    for _ in range(10):
        floors.learn(table.claim(floors.ranges("t", 1), 3))
    assert floors.heights()
    floors.forget()
    assert not floors.heights()
    assert floors.ranges("t", 1) == [
        Range("t", 1, False, MIN_RANK, 0, MAX_RANK),
        Range("t", 1, True, MIN_RANK, 0, MAX_RANK),
    ]


@given(st.dictionaries(st.integers(-100, 100), st.integers(1, 1000), max_size=20))
def test_ranges_of_a_type_cover_every_rank_once(levels: dict[int, int]) -> None:
    floors, xid = Floors(), 1
    for rank, seq in levels.items():
        for one in (seq, seq + 1, seq + 2):
            made = [Assignment(Claim(one, NOBODY, 1), rank, "t", "{}", None, 0, True)]
            floors.learn(ClaimAnswer("ok", xid, xid, 0, False, 30, False, None, 0, made))
            xid += 1
    fresh = [r for r in floors.ranges("t", 1) if r.fresh]
    for rank in (*levels, -50_000, 0, 50_000):
        top = 10_000_000
        assert len([r for r in fresh if (rank, top) > (r.lo, r.floor) and rank <= r.hi]) == 1
    assert len(fresh) <= MAX_LEVELS + 1


def test_each_job_type_has_separate_floors() -> None:
    floors = Floors()
    ranges = all_ranges(floors, [("a", 1), ("b", 2)])
    assert {(r.job_type, r.group) for r in ranges} == {("a", 1), ("b", 2)}
    assert {r.fresh for r in ranges if r.job_type == "a"} == {True, False}
