"""Flows as requested by name: their order, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.domain.codec import from_json, to_json
from laneway.domain.flow import (
    MAX_FLOW_EDGES,
    MAX_FLOW_JOBS,
    Flow,
    FlowCounts,
    FlowGraph,
    FlowJob,
    FlowStatus,
    NamedJob,
    arrange,
    check_after_failure,
    check_size,
)
from laneway.domain.states import Status
from laneway.errors import InvalidInput


def _positions(*jobs: NamedJob) -> list[int]:
    return [each.position for each in arrange(jobs)]


def test_jobs_keep_the_given_order_where_edges_allow_it() -> None:
    assert _positions(NamedJob("a", ()), NamedJob("b", ["a"]), NamedJob("c", ())) == [0, 1, 2]


def test_job_is_stored_after_the_jobs_it_names() -> None:
    jobs = (NamedJob("join", ["b", "a"]), NamedJob("a", ["b"]), NamedJob("b", ()))
    assert _positions(*jobs) == [2, 1, 0]
    assert arrange(jobs)[-1].parents == (2, 1)


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), min_size=1, max_size=30), st.randoms())
def test_any_graph_without_circle_is_ordered(edges: list[list[int]], random: Random) -> None:
    # Every edge leads to an earlier job, then the jobs are shuffled.
    jobs = [
        NamedJob(f"j{i}", [f"j{parent}" for parent in parents if parent < i])
        for i, parents in enumerate(edges)
    ]
    random.shuffle(jobs)
    stored: set[int] = set()
    for place in arrange(jobs):
        assert stored.issuperset(place.parents)
        assert {jobs[parent].name for parent in place.parents} == set(jobs[place.position].after)
        stored.add(place.position)
    assert len(stored) == len(jobs)


def test_job_may_come_after_existing_jobs_by_id() -> None:
    job_id = uuid4()
    (place,) = arrange([NamedJob(None, [str(job_id), str(job_id)])])
    assert place.outside == (job_id,)
    assert place.parents == ()


def test_name_wins_over_an_id_that_reads_the_same() -> None:
    text = str(UUID(int=7))
    assert arrange([NamedJob(text, ()), NamedJob(None, [text])])[1].parents == (0,)


@pytest.mark.parametrize(
    "jobs, field, words",
    [
        ([NamedJob("a", ["a"])], "jobs[0].after[0]", "itself"),
        ([NamedJob("a", ()), NamedJob("a", ())], "jobs[1].name", "jobs[0] has the name 'a'"),
        ([NamedJob(None, ["nope"])], "jobs[0].after[0]", "'nope' is neither the name"),
        ([NamedJob("a\x07", ())], "jobs[0].name", "printable"),
        ([NamedJob(" a", ())], "jobs[0].name", "blank"),
        ([NamedJob("x" * 129, ())], "jobs[0].name", "128 bytes"),
        ([], "jobs", "at least one job"),
    ],
)
def test_wrong_names_are_refused(jobs: list[NamedJob], field: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        arrange(jobs)
    assert refused.value.field == field
    assert words in refused.value.rule


def test_circle_is_refused_and_named_without_the_jobs_before_it() -> None:
    jobs = [
        NamedJob("start", ()),
        NamedJob("late", ["c"]),
        NamedJob("a", ["start", "b"]),
        NamedJob("b", ["c"]),
        NamedJob("c", ["a"]),
    ]
    with pytest.raises(InvalidInput) as refused:
        arrange(jobs)
    assert refused.value.rule == "come after each other in a circle: c after a after b after c"


def test_long_circle_is_named_in_few_words() -> None:
    jobs = [NamedJob(f"j{i}", [f"j{(i + 1) % 5000}"]) for i in range(5000)]
    with pytest.raises(InvalidInput) as refused:
        arrange(jobs)
    assert len(refused.value.rule) < 120
    assert "…" in refused.value.rule


def test_chain_of_all_jobs_is_ordered() -> None:
    jobs = [NamedJob(f"j{i}", [f"j{i - 1}"] if i else ()) for i in range(20_000)]
    assert len(arrange(jobs)) == 20_000


def test_edges_beyond_the_limit_are_refused() -> None:
    parents = [NamedJob(f"p{i}", ()) for i in range(400)]
    names = [job.name or "" for job in parents]
    children = [NamedJob(None, names) for _ in range(251)]
    with pytest.raises(InvalidInput, match=rf"at most {MAX_FLOW_EDGES} edges, not 100400"):
        arrange([*parents, *children])
    check_size(MAX_FLOW_JOBS, MAX_FLOW_EDGES)
    with pytest.raises(InvalidInput, match="at most 100000 jobs, not 100001"):
        check_size(MAX_FLOW_JOBS + 1, 0)
    with pytest.raises(InvalidInput, match="at most 100000 edges, not 100001"):
        check_size(2, MAX_FLOW_EDGES + 1)


def test_effect_of_a_failure_is_one_of_three_words() -> None:
    assert [check_after_failure(word) for word in ("cancel", "run", "hold")] == [
        "cancel", "run", "hold",
    ]  # fmt: skip
    for wrong in ("ignore", "", None, True, ["run"]):
        with pytest.raises(InvalidInput, match="must be one of cancel, run, hold"):
            check_after_failure(wrong)


def test_graph_is_the_same_after_json() -> None:
    counts = FlowCounts(5, completed=2, failed=1)
    flow = Flow(
        id=uuid4(), name="nightly", status=FlowStatus.RUNNING, workspace="default", tags=("a",),
        created_at=datetime(2030, 1, 1, tzinfo=UTC), created_by="ann", counts=counts,
    )  # fmt: skip
    job = FlowJob(id=uuid4(), job_type="page", status=Status.FAILED, after=(uuid4(), uuid4()))
    graph = FlowGraph(flow=flow, jobs=(job,), next_cursor="7")
    shown = to_json(graph)
    assert shown["name"] == "nightly"
    assert shown["counts"] == {"jobs": 5, "completed": 2, "failed": 1, "cancelled": 0}
    assert from_json(FlowGraph, shown) == graph
    assert str(counts) == "2 of 5 jobs completed, 1 failed"


@pytest.mark.parametrize(
    "counts, status",
    [
        (FlowCounts(1), "running"),
        (FlowCounts(3, 1, 1, 0), "running"),
        (FlowCounts(3, 1, 1, 1), "failed"),
        (FlowCounts(3, 1, 0, 2), "cancelled"),
        (FlowCounts(3, 3), "completed"),
    ],
)
def test_status_of_a_flow_follows_from_its_jobs(counts: FlowCounts, status: str) -> None:
    assert counts.status == status
