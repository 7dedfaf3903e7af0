"""A walk over everything that touches limits and keys: after every step the tables agree."""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from laneway.domain.claim import Claim
from laneway.store import caller_transaction, jobs, lanes, leases
from laneway.store.leases import Verdict
from tests.support.store_client import PLACES, StoreClient, error

TYPES = ("a", "b", "c")
LIMITS = ("x", "y")
VERDICTS = ("finish", "fail", "giveup", "snooze", "release", "cancel", "lost")
NEEDS = st.sampled_from([(), ("x",), ("y",), ("x", "y")])
MOST = st.sampled_from([0, 1, 2, None])
ONE = st.integers(0, 99)
WHOM = st.sampled_from(["jobs", "ready", "key_waiters"])


class Walk(RuleBasedStateMachine):
    """Two workers on one connection, in a transaction that is rolled back at the end."""

    db: ClassVar[StoreClient]

    def __init__(self) -> None:
        super().__init__()
        self.db.begin()
        self.db.do("insert into laneway.limits (name, max_concurrent) values ('x', 1), ('y', 2)")
        self.db.do(
            "insert into laneway.job_types (name, limits)"
            " values ('a', '{x}'), ('b', '{x,y}'), ('c', '{}')"
        )
        self.workers = (self.db.worker, uuid4())
        # Enough jobs to compete for a key from the first step on.
        self.seqs = [
            self.db.submit(job_type, concurrency_key="k", max_retries=1) for job_type in "cca"
        ]

    def teardown(self) -> None:
        try:
            self.all_can_end()
        finally:
            self.db.rollback()

    # -- steps --------------------------------------------------------------------------------

    @rule(
        job_type=st.sampled_from(TYPES),
        priority=st.integers(-1, 1),
        key=st.sampled_from([None, "k", "l"]),
        delay=st.sampled_from([None, None, 3600.0]),
    )
    def submit(self, job_type: str, priority: int, key: str | None, delay: float | None) -> None:
        self.seqs.append(
            self.db.submit(
                job_type, priority=priority, concurrency_key=key, delay=delay, max_retries=1
            )
        )

    @rule(
        room=st.integers(1, 4),
        types=st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
        who=st.integers(0, 1),
    )
    def claim(self, room: int, types: list[str], who: int) -> None:
        shut = {
            name
            for name, held, most in self._load()
            if most is not None and held >= most
            for name in self._types_needing(name)
        }
        answer = self._claim(room, types, who)
        got = [(one.rank, one.claim.seq) for one in answer.assignments]
        assert got == sorted(got)
        assert not shut & {one.job_type for one in answer.assignments}
        for name, held, most in self._load():
            if set(self._types_needing(name)) & {one.job_type for one in answer.assignments}:
                assert most is None or held <= most, "a claim went over a limit"
        if not answer.assignments and not answer.more:
            left = {row[0] for row in self.db.rows("select distinct job_type from laneway.ready")}
            assert left & set(types) <= shut, "a job that may run was left"

    @rule(one=ONE, kind=st.sampled_from(VERDICTS), late=st.booleans())
    def settle(self, one: int, kind: str, late: bool) -> None:
        claim = self._running(one)
        if claim is not None:
            claim = claim._replace(attempt=claim.attempt - late)
            self.db.settle(claim, kind, error=error(), delay_s=3600.0 if kind == "snooze" else 0.0)

    @rule()
    def settle_all(self) -> None:
        claims = [c for n in range(len(self.seqs)) if (c := self._running(n)) is not None]
        if claims:
            verdicts = [Verdict(c, VERDICTS[n % 5], error=error()) for n, c in enumerate(claims)]
            self.db.run(leases.settle(verdicts))

    @rule(one=ONE)
    def finish_apart(self, one: int) -> None:
        claim = self._running(one)
        if claim is not None:
            self.db.run(caller_transaction.finish(claim, "null", 0.0))

    @rule(one=ONE)
    def confirm(self, one: int) -> None:
        rows = self.db.rows("select seq, attempt from laneway.self_finished order by seq")
        if rows:
            seq, attempt = rows[one % len(rows)]
            self.db.settle(Claim(seq, self.db.id_of(seq), attempt), "confirm")

    @rule()
    def fold(self) -> None:
        self.db.do("select laneway.release_self_finished()")

    @rule()
    def reclaim(self) -> None:
        self.db.do("update laneway.lease set lease_until = '-infinity' where attempt = 1")
        self.db.run(leases.run_watchdog(self.db.worker, 10))

    @rule(who=st.integers(0, 1))
    def bury(self, who: int) -> None:
        self.db.run(leases.fail_worker(self.workers[who], "gone", hung=True, culprit=-1))

    @rule(one=ONE, whom=WHOM)
    def cancel(self, one: int, whom: str) -> None:
        self.db.cancel(self._pick(one, whom))

    @rule(one=ONE, whom=WHOM, priority=st.integers(-2, 2))
    def reprioritize(self, one: int, whom: str, priority: int) -> None:
        self.db.run(jobs.reprioritize(self.db.id_of(self._pick(one, whom)), priority))

    @rule(one=ONE)
    def retry(self, one: int) -> None:
        self.db.retry(self._pick(one, "jobs"))

    @rule(types=st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True))
    def park(self, types: list[str]) -> None:
        self.db.run(leases.park(types, 3))

    @rule()
    def sweep(self) -> None:
        self.db.do("select laneway.sweep_keys()")

    @rule()
    def promote(self) -> None:
        self.db.do("update laneway.delayed set run_at = clock_timestamp()")
        self.db.run(lanes.peek(list(TYPES)))

    @rule(name=st.sampled_from(LIMITS), most=MOST)
    def tune(self, name: str, most: int | None) -> None:
        self.db.do("update laneway.limits set max_concurrent = %s where name = %s", most, name)

    @rule(job_type=st.sampled_from(TYPES), needs=NEEDS)
    def republish(self, job_type: str, needs: tuple[str, ...]) -> None:
        self.db.do(
            "update laneway.job_types set limits = %s where name = %s", list(needs), job_type
        )

    # -- what must hold after every step --------------------------------------------------------

    @invariant()
    def every_job_is_in_exactly_one_place(self) -> None:
        union = " union all ".join(f"select seq from laneway.{place}" for place in PLACES)
        rows = self.db.rows(f"select seq, count(*) from ({union}) p group by 1")
        assert dict(rows) == dict.fromkeys(self.seqs, 1)

    @invariant()
    def the_counters_are_what_is_held(self) -> None:
        assert self.db.slots_agree() or self.db.rows("select 1 from laneway.self_finished")
        assert self.db.limits_agree()

    @invariant()
    def keys_are_held_once_and_nobody_waits_for_a_free_one(self) -> None:
        assert self.db.keys_agree()
        assert not self.db.rows(
            "select 1 from laneway.lease where concurrency_key is not null"
            " group by workspace, concurrency_key having count(*) > 1"
        )

    def all_can_end(self) -> None:
        """Nothing waits for an event that never comes."""
        self.db.do("update laneway.limits set max_concurrent = null")
        self.fold()
        self.promote()
        while (answer := self._claim(10, list(TYPES), 0)).assignments or answer.more:
            claims = [one.claim for one in answer.assignments]
            if claims:
                self.db.run(leases.settle([Verdict(c, "finish") for c in claims]))
        running = [c for n in range(len(self.seqs)) if (c := self._running(n)) is not None]
        if running:
            self.db.run(leases.settle([Verdict(c, "finish") for c in running]))
            return self.all_can_end()
        assert self.db.one("select count(*) from laneway.outcome") == len(self.seqs)
        for table in ("key_holders", "key_waiters"):
            assert self.db.one(f"select count(*) from laneway.{table}") == 0
        for table in ("slot_usage", "limit_usage"):
            assert not self.db.rows(f"select 1 from laneway.{table} where running <> 0")
        return None

    # -- looking --------------------------------------------------------------------------------

    def _claim(self, room: int, types: list[str], who: int) -> leases.ClaimAnswer:
        self.db.worker = self.workers[who]
        try:
            return self.db.claim(room, types)
        finally:
            self.db.worker = self.workers[0]

    def _running(self, one: int) -> Claim | None:
        """The running attempt of one of the jobs."""
        seq = self._pick(one, "jobs")
        rows = self.db.rows("select attempt from laneway.lease where seq = %s", seq)
        return Claim(seq, self.db.id_of(seq), rows[0][0]) if rows else None

    def _pick(self, one: int, whom: str) -> int:
        """One of the jobs in a table, or any job if the table is empty."""
        rows = self.db.rows(f"select seq from laneway.{whom} order by seq")
        seqs = [seq for (seq,) in rows] or self.seqs
        return seqs[one % len(seqs)]

    def _load(self) -> list[tuple[str, int, int | None]]:
        rows = self.db.rows(
            "select l.name, (select count(*) from laneway.lease s, unnest(s.limits) m"
            " where m = l.name) + (select count(*) from laneway.self_finished s, unnest(s.limits) m"
            " where m = l.name), l.max_concurrent from laneway.limits l where l.name in ('x', 'y')"
        )
        return [(name, held, most) for name, held, most in rows]

    def _types_needing(self, limit: str) -> list[str]:
        rows = self.db.rows("select name from laneway.job_types where %s = any (limits)", limit)
        return [name for (name,) in rows]


@pytest.fixture
def walker(db: StoreClient) -> type[Walk]:
    Walk.db = db
    return Walk


def test_limits_and_keys_agree_after_any_walk(walker: type[Walk]) -> None:
    run_state_machine_as_test(
        walker,
        settings=settings(
            max_examples=40,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
