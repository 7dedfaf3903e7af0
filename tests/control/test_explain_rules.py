"""Explain and claim agree: a job without reasons, except its place, is one that a claim takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laneway.control.explain import BOUND, PLACES, reasons_of
from laneway.domain.states import TERMINAL, Status
from laneway.store import jobs, lanes, leases
from laneway.store.explain import facts
from laneway.store.leases import MAX_RANK, MIN_RANK, Range, Verdict
from tests.support.job_factory import JobFactory

# Types that need no limit, one, two, one that needs an approval and one an analysis, and one whose
# approval is asked for only after its jobs were submitted.
NEEDS = {
    "plain": "{}", "one": "{x}", "two": "{x,y}", "asked": "{}", "analysed": "{x}", "later": "{y}",
}  # fmt: skip
ROOM = 1000


@dataclass(frozen=True)
class NewJob:
    job_type: str
    priority: int
    key: str | None
    is_delayed: bool


NEW_JOBS = st.builds(
    NewJob,
    st.sampled_from(sorted(NEEDS)),
    st.integers(0, 2),
    st.sampled_from([None, None, "k", "l"]),
    st.integers(0, 9).map(lambda n: n == 0),
)
CEILINGS = st.sampled_from([None, 0, 1, 2, 3])


def claim(
    factory: JobFactory, room: int, types: Iterable[str] = NEEDS
) -> dict[UUID, leases.Assignment]:
    state = factory.run(lanes.read())
    ranges = [
        Range(name, 1, fresh, MIN_RANK, 0, MAX_RANK) for name in types for fresh in (False, True)
    ]
    statement = leases.claim(factory.worker_id, "default", state.version, room, ranges, [room])
    answer = factory.run(statement)
    while answer.parked and not answer.assignments:
        # The blocking job was parked: a worker claims again.
        answer = factory.run(statement)
    return {one.claim.job_id: one for one in answer.assignments}


def could_start(factory: JobFactory, job_id: UUID) -> bool:
    """Whether explain gives no reason except the job's place."""
    found, job = factory.run(facts(job_id, bound=BOUND)), factory.run(jobs.get(job_id))
    return {reason.code for reason in reasons_of(job, found, 1 / 3)} <= PLACES


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    new=st.lists(NEW_JOBS, max_size=14),
    later=st.lists(NEW_JOBS, max_size=6),
    first_room=st.integers(0, 6),
    ended=st.sampled_from(["finish", "release", "fail"]),
    x=CEILINGS,
    y=CEILINGS,
    rate=st.sampled_from([None, None, 1, 3]),
    scope=st.sampled_from(["cluster", "process", "host"]),
    gate=st.sampled_from(["open"] * 5 + ["paused", "drained", "no slots"]),
    slots=st.sampled_from([None, None, 1, 3, 6]),
)
def test_job_without_a_reason_is_one_that_a_claim_takes(
    factory: JobFactory,
    new: list[NewJob],
    later: list[NewJob],
    first_room: int,
    ended: str,
    x: int | None,
    y: int | None,
    rate: int | None,
    scope: str,
    gate: str,
    slots: int | None,
) -> None:
    with factory.conn.transaction(force_rollback=True):
        factory.register(tuple(NEEDS))
        for name, needs in NEEDS.items():
            factory.publish(name)
            factory.conn.execute(
                "update laneway.job_types set limits = %s::text[], approval = %s, has_analysis = %s"
                " where name = %s",
                [needs, "always" if name == "asked" else "never", name == "analysed", name],
            )
        factory.conn.execute(
            "insert into laneway.limits (name, max_concurrent, rate_count, rate_period_s, scope)"
            " values ('x', %s, %s, %s, %s), ('y', %s, null, null, 'cluster')",
            [x, rate, None if rate is None else 3600, scope, y],
        )
        submitted = [submit(factory, one) for one in new]
        held = claim(factory, first_room)
        for job_id in sorted(held, key=str)[: len(held) // 2]:
            factory.run(leases.settle([Verdict(held[job_id].claim, ended, delay_s=0.0)]))
        submitted += [submit(factory, one) for one in later]
        factory.conn.execute(
            "update laneway.job_types set approval = 'always' where name = 'later'"
        )
        for _ in (one for one in (*new, *later) if one.job_type == "later"):
            # Sends them back to their approval, so that they take no slot or key of the last claim.
            assert claim(factory, ROOM, ["later"]) == {}
        factory.conn.execute(
            "update laneway.worker_lanes set max_slots = %s where name = 'default'", [slots]
        )
        shut(factory, gate)
        waiting = [
            job_id
            for job_id in submitted
            if factory.run(jobs.get(job_id)).status not in (Status.RUNNING, *TERMINAL)
        ]
        startable = {job_id for job_id in waiting if could_start(factory, job_id)}
        used = factory.conn.execute("select count(*) from laneway.lease").fetchone()
        assert used is not None
        free = ROOM if slots is None else max(slots - used[0], 0)
        taken = set(claim(factory, ROOM))
        if free >= ROOM:
            assert taken == startable
        else:
            # Its place decides which job gets a slot; a job parked for its key may use one.
            assert taken <= startable
            assert len(taken) <= free
            assert bool(taken) == bool(startable and free)


def submit(factory: JobFactory, one: NewJob) -> UUID:
    return factory.submit(
        one.job_type,
        priority=one.priority,
        concurrency_key=one.key,
        delay=3600.0 if one.is_delayed else None,
    )


def shut(factory: JobFactory, gate: str) -> None:
    if gate == "paused":
        factory.conn.execute("update laneway.control set paused = true")
    elif gate == "drained":
        factory.conn.execute(
            "update laneway.worker_lanes set enabled = false where name = 'default'"
        )
    elif gate == "no slots":
        factory.conn.execute("update laneway.worker_lanes set max_slots = 0 where name = 'default'")
