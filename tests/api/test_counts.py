"""Counts of jobs per state: within scope, filtered, up to a bound."""

from __future__ import annotations

from typing import Any

from laneway.control import jobs
from laneway.domain.approval import Approval
from laneway.domain.filter import JobFilter
from laneway.domain.permissions import Reach, Term
from laneway.domain.states import Status
from laneway.store import jobs as store
from laneway.store.database import Database
from tests.api.conftest import Ask, People, Principal
from tests.support.job_factory import JobFactory

COUNTS = "/jobs/counts"


async def counts_of(ask: Ask, who: Principal, **params: Any) -> dict[str, int]:
    """The states with at least one job."""
    answer = await ask(who, "GET", COUNTS, params=params)
    assert answer.status_code == 200, answer.text
    items = answer.json()["items"]
    assert [each["status"] for each in items] == list(Status)
    assert not any(each["is_capped"] for each in items)
    return {each["status"]: each["count"] for each in items if each["count"]}


def one_of_each(factory: JobFactory, **fields: Any) -> None:
    """A job in every state, and an approved one in each table where it may wait."""
    factory.publish("gated", approval=Approval())
    factory.publish("costly", has_analysis=True)
    factory.submit("gated", **fields)
    factory.submit("costly", **fields)
    factory.submit("greet", delay=60.0, **fields)
    factory.completed("ingestion", **fields)
    factory.failed("restore", **fields)
    factory.run(store.cancel(factory.submit("restore", **fields), "me", None))
    factory.running("polarity", concurrency_key="k", **fields)
    factory.submit("polarity", concurrency_key="k", **fields)
    factory.claim("polarity")
    factory.submit("greet", **fields)


ALL = {
    "pending": 1, "awaiting_approval": 1, "approved": 3, "running": 1, "completed": 1, "failed": 1,
    "cancelled": 1,
}  # fmt: skip


async def test_every_state_has_its_count(ask: Ask, people: People, factory: JobFactory) -> None:
    one_of_each(factory)
    assert await counts_of(ask, people.new("vera", "viewer")) == ALL


async def test_only_jobs_in_reach_are_counted(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    one_of_each(factory, workspace="theirs", created_by="somebody")
    one_of_each(factory, workspace="ours", created_by="sue")
    assert await counts_of(ask, people.new("vera", "viewer", workspace="ours")) == ALL
    assert await counts_of(ask, people.new("sue", "submitter", scope="own")) == ALL
    assert await counts_of(ask, people.new("new", "submitter", scope="own")) == {}
    # Both kinds of scope count each job once.
    both = people.new("somebody", "submitter", scope="own")
    people.grant(both.id, "viewer", workspace="theirs")
    assert await counts_of(ask, both) == ALL
    lane = people.new("larry", "viewer", lanes=["interactive"])
    assert await counts_of(ask, lane) == {"approved": 2, "running": 2, "completed": 2}


async def test_counts_agree_with_lists(ask: Ask, people: People, factory: JobFactory) -> None:
    one_of_each(factory, workspace="ours", tags=("a",))
    one_of_each(factory, workspace="theirs")
    vera = people.new("vera", "viewer")
    choices: list[dict[str, Any]] = [
        {"lane": "interactive"},
        {"job_type": "costly"},
        {"job_type": "greet", "lane": "default"},
        {"workspace": "ours"},
        {"tag": "a"},
        {"newer_than": 3600, "older_than": 0},
        {"older_than": 3600},
        {"since": "2200-01-01T00:00:00Z"},
    ]
    for choice in choices:
        listed = {}
        for status in Status:
            page = await ask(vera, "GET", "/jobs", params={**choice, "status": status})
            if found := len(page.json()["items"]):
                listed[status.value] = found
        assert await counts_of(ask, vera, **choice) == listed, choice


async def test_unbounded_count_is_refused(ask: Ask, people: People) -> None:
    vera = people.new("vera", "viewer")
    for params in ({"q": "x"}, {"status": "failed"}, {"lane": "No!"}, {"job_type": "\0"}):
        assert (await ask(vera, "GET", COUNTS, params=params)).status_code == 422, params


async def test_count_stops_at_bound_and_reports_it(database: Database, factory: JobFactory) -> None:
    for _ in range(3):
        factory.completed(created_by="ann")
    factory.failed()

    async def seen(within: Reach | None = None, **wanted: Any) -> dict[Status, tuple[int, bool]]:
        found = await jobs.counts(database, JobFilter(within=within, **wanted), bound=2)
        return {each.status: (each.count, each.is_capped) for each in found}

    every = await seen()
    assert (every[Status.COMPLETED], every[Status.FAILED]) == ((2, True), (1, False))
    own = await seen(Reach((Term(owner="ann"),)))
    assert own[Status.COMPLETED] == (2, True)
    other = await seen(job_type="other")
    assert (other[Status.COMPLETED], other[Status.FAILED]) == ((0, True), (0, False))
    # Counts reveal nothing outside the caller's scope.
    theirs = await seen(Reach((Term(workspace="ours"),)), workspace="default")
    assert set(theirs.values()) == {(0, False)}
