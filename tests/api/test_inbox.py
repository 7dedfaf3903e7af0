"""The list of awaiting jobs: oldest first, page by page."""

from __future__ import annotations

from laneway.domain.approval import Approval
from tests.api.conftest import Ask, People
from tests.support.job_factory import JobFactory

INBOX = {"status": "awaiting_approval", "oldest_first": True}


async def test_oldest_comes_first_page_by_page(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.publish("gated", approval=Approval())
    ids = [str(factory.submit("gated")) for _ in range(5)]
    factory.submit("greet")
    ann = people.new("ann", "approver")
    seen: list[str] = []
    cursor = None
    while True:
        given = {**INBOX, "limit": 2, **({} if cursor is None else {"cursor": cursor})}
        answer = await ask(ann, "GET", "/jobs", params=given)
        assert answer.status_code == 200, answer.text
        seen += [each["id"] for each in answer.json()["items"]]
        cursor = answer.json()["next_cursor"]
        if cursor is None:
            break
    assert seen == ids


async def test_own_scope_lists_only_own_jobs_page_by_page(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.publish("gated", approval=Approval())
    factory.submit("gated", created_by="bert")
    first, second = (str(factory.submit("gated", created_by="ann")) for _ in range(2))
    factory.submit("greet", created_by="ann")
    ann = people.new("ann", "submitter")
    answer = (await ask(ann, "GET", "/jobs", params={**INBOX, "limit": 1})).json()
    assert [each["id"] for each in answer["items"]] == [first]
    given = {**INBOX, "cursor": answer["next_cursor"]}
    answer = (await ask(ann, "GET", "/jobs", params=given)).json()
    assert ([each["id"] for each in answer["items"]], answer["next_cursor"]) == ([second], None)


async def test_it_is_narrowed_as_other_lists_are(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.publish("gated", approval=Approval())
    factory.submit("gated", workspace="theirs", tags=("a",))
    first = str(factory.submit("gated", workspace="ours", tags=("a",)))
    factory.submit("gated", workspace="ours")
    ann = people.new("ann", "approver", workspace="ours")
    for choice in ({"tag": "a"}, {"tag": "a", "job_type": "gated", "lane": "default"}):
        answer = await ask(ann, "GET", "/jobs", params={**INBOX, **choice})
        assert [each["id"] for each in answer.json()["items"]] == [first]
    answer = await ask(ann, "GET", "/jobs", params={**INBOX, "tag": "b"})
    assert answer.json() == {"items": [], "next_cursor": None, "looked_back_to": None}


async def test_only_approvals_have_that_order(ask: Ask, people: People) -> None:
    ann = people.new("ann", "approver")
    for status in ({}, {"status": "failed"}):
        answer = await ask(ann, "GET", "/jobs", params={"oldest_first": True, **status})
        assert answer.status_code == 422
        assert answer.json()["errors"] == [
            {"field": "oldest_first", "rule": "is for status awaiting_approval only"}
        ]


async def test_last_approved_job_of_the_type_is_one_read(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    """An approver compares a job with it, and sees how long jobs of the type run."""
    eve = people.new("eve", "approver")
    factory.publish("gated", approval=Approval())
    last = factory.submit("gated", payload='{"pages": 12345678901234567890}')
    assert (await ask(eve, "POST", f"/jobs/{last}/approve")).status_code == 200
    (claim,) = factory.claim("gated")
    factory.settle(claim, result="{}", ran_s=2.0)
    rejected = factory.submit("gated")
    await ask(eve, "POST", f"/jobs/{rejected}/reject", json={"reason": "no"})
    waiting = factory.submit("gated")
    wanted = {"job_type": "gated", "was_approved": True, "limit": 1}
    answer = await ask(eve, "GET", "/jobs", params=wanted)
    (found,) = answer.json()["items"]
    assert (found["id"], found["approved_by"]) == (str(last), "eve")
    assert found["payload"] == {"pages": 12345678901234567890}
    explained = (await ask(eve, "GET", f"/jobs/{waiting}/explain")).json()
    assert explained["runs_for_s"] >= 0
    never = await ask(eve, "GET", "/jobs", params={**wanted, "was_approved": False, "limit": 9})
    assert [job["id"] for job in never.json()["items"]] == [str(waiting), str(rejected)]
