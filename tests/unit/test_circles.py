"""A circle is named if, and only if, jobs that wait for each other hold what they need."""

from __future__ import annotations

from uuid import UUID

from laneway.control.circles import find_circle
from laneway.store.waits import QueuedJob, Use, WaitGraph, WaitingRun

WORKER = UUID(int=99)
OTHER = UUID(int=98)


def run(
    seq: int, *waits_for: int, lane: str = "x", limits: tuple[str, ...] = (), worker: UUID = WORKER
) -> WaitingRun:
    return WaitingRun(seq, UUID(int=seq), lane, worker, limits, frozenset(waits_for))


def queued(
    seq: int,
    *,
    lane: str = "x",
    limits: tuple[str, ...] = (),
    key_holder: int | None = None,
    workers: tuple[UUID, ...] = (),
) -> QueuedJob:
    return QueuedJob(seq, UUID(int=seq), lane, limits, key_holder, frozenset(workers))


def circles(
    runs: list[WaitingRun],
    waiting: list[QueuedJob],
    lanes: dict[str, Use] | None = None,
    limits: dict[str, Use] | None = None,
    workers: dict[UUID, int] | None = None,
    *,
    of: int,
) -> list[str]:
    graph = WaitGraph(
        {one.seq: one for one in runs},
        {one.seq: one for one in waiting},
        lanes or {},
        limits or {},
        workers or {},
    )
    return [reason.message for reason in find_circle(graph, UUID(int=of))]


def test_parent_in_the_only_slot_of_its_lane() -> None:
    (message,) = circles([run(1, 2)], [queued(2)], {"x": Use(1, 1)}, of=2)
    assert message == (
        f"job {UUID(int=1)} (running in lane x, 1 of 1 slots) waits for this job; raise"
        " max_slots with `laneway lanes set x --max-slots 2`, or move one of the job types to"
        " another lane with `laneway lanes move TYPE LANE`"
    )


def test_lane_with_a_slot_that_ends_by_itself_is_no_circle() -> None:
    assert circles([run(1, 2)], [queued(2)], {"x": Use(2, 2)}, of=2) == []
    assert circles([run(1, 2)], [queued(2)], {"x": Use(2, 1)}, of=2) == []
    assert circles([run(1, 2)], [queued(2)], of=2) == []
    assert circles([run(1, 2, lane="y")], [queued(2)], {"x": Use(1, 1)}, of=2) == []


def test_parents_that_fill_a_lane_with_their_children_behind() -> None:
    runs, waiting = [run(1, 3), run(2, 4)], [queued(3), queued(4)]
    (message,) = circles(runs, waiting, {"x": Use(2, 2)}, of=3)
    assert message.startswith(
        f"jobs {UUID(int=1)}, {UUID(int=2)} (running in lane x, 2 of 2 slots) wait for this"
        f" job, and job {UUID(int=4)}, which cannot start or end either; raise max_slots"
    )
    # One of the parents waits for a job that can start: it ends, and its slot is free.
    waiting = [queued(3), queued(4, lane="y")]
    assert circles(runs, waiting, {"x": Use(2, 2)}, of=3) == []


def test_circle_through_a_running_job_between_them() -> None:
    runs = [run(1, 2), run(2, 3, lane="y")]
    (message,) = circles(runs, [queued(3)], {"x": Use(1, 1)}, of=3)
    assert (
        f"job {UUID(int=1)} (running in lane x, 1 of 1 slots) waits for job {UUID(int=2)}"
        in message
    )


def test_other_job_behind_a_circle_is_stuck_too() -> None:
    (message,) = circles([run(1, 2)], [queued(2), queued(3)], {"x": Use(1, 1)}, of=3)
    assert f"waits for job {UUID(int=2)}, which cannot start or end either" in message


def test_circle_through_a_limit() -> None:
    runs, waiting = [run(1, 2, limits=("llm", "llm"))], [queued(2, limits=("llm",))]
    (message,) = circles(runs, waiting, limits={"llm": Use(2, 2)}, of=2)
    assert "(holding the limit llm, 2 of 2) waits for this job; raise it with" in message
    assert "`laneway limits set llm --max-concurrent 3`, or release it before waiting" in message
    # A holder besides the parent ends by itself.
    assert circles(runs, waiting, limits={"llm": Use(3, 3)}, of=2) == []


def test_circle_through_a_key() -> None:
    (message,) = circles([run(1, 2)], [queued(2, key_holder=1)], of=2)
    assert "(holding its concurrency_key) waits for this job; submit one of them with" in message
    assert circles([run(1, 2)], [queued(2, key_holder=9)], of=2) == []


def test_circle_through_the_room_of_workers() -> None:
    waiting = [queued(2, workers=(WORKER,))]
    (message,) = circles([run(1, 2)], waiting, workers={WORKER: 1}, of=2)
    assert "(taking all room of its workers) waits for this job; start another worker" in message
    assert circles([run(1, 2)], waiting, workers={WORKER: 2}, of=2) == []
    two = [queued(2, workers=(WORKER, OTHER))]
    assert circles([run(1, 2)], two, workers={WORKER: 1, OTHER: 1}, of=2) == []


def test_job_that_is_not_queued_is_in_no_circle() -> None:
    assert circles([run(1, 2)], [queued(2)], {"x": Use(1, 1)}, of=1) == []


class CountedName(str):
    """A name that counts how often it is looked at."""

    looks = 0

    def __eq__(self, other: object) -> bool:
        CountedName.looks += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        CountedName.looks += 1
        return str.__hash__(self)


def looks_among(count: int) -> int:
    CountedName.looks = 0
    lane, limit = CountedName("x"), CountedName("llm")
    parents, children = range(count), range(count, 2 * count)
    runs = [run(seq, seq + count, lane=lane, limits=(limit,)) for seq in parents]
    waiting = [queued(seq, lane=lane, limits=(limit,), workers=(WORKER,)) for seq in children]
    full = Use(count + 1, count + 1)
    workers = {WORKER: count}
    assert len(circles(runs, waiting, {"x": full}, {"llm": full}, workers, of=count)) == 1
    return CountedName.looks


def test_work_grows_with_the_number_of_waiting_handlers_not_its_square() -> None:
    assert looks_among(400) <= 1.1 * 4 * looks_among(100)
