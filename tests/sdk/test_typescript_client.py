"""The TypeScript client against a real server."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from laneway.domain.approval import Approval
from tests.api.conftest import People
from tests.http.threaded_server import served
from tests.sdk.driver import ClientError, Driver, typescript_client
from tests.support.job_factory import JobFactory


def refusal(client: Driver, name: str, *args: object) -> dict[str, Any]:
    with pytest.raises(ClientError) as raised:
        client.call(name, *args)
    return raised.value.details


def test_submitted_jobs_are_read_listed_and_explained(client: Driver) -> None:
    new = {"job_type": "greet", "payload": {"to": "é✓"}, "priority": 10, "tags": ["a&b"]}
    job = client.call("submit", new)
    assert {name: job[name] for name in new} == new
    assert (job["status"], job["created_by"]) == ("approved", "admin")
    assert client.call("get", job["id"])["attempts"] == []
    assert [one["id"] for one in client.call("list", {"tag": "a&b"})] == [job["id"]]
    assert client.call("page", {"tag": "none"}, {"limit": 1})["items"] == []
    explained = client.call("explain", job["id"])
    assert explained["status"] == "approved"
    assert "no_worker" in [one["code"] for one in explained["reasons"]]


def test_every_page_of_a_list_is_fetched(client: Driver, factory: JobFactory) -> None:
    jobs = [{"job_type": "greet", "tags": ["many"]} for _ in range(450)]
    submitted = client.call("submitMany", jobs)
    listed = client.call("list", {"tag": "many"})
    assert [one["id"] for one in reversed(listed)] == [one["id"] for one in submitted]


def test_repeated_submit_creates_one_job(client: Driver) -> None:
    unique = {"job_type": "greet", "unique_key": "k"}
    first = client.call("submit", unique)
    assert client.call("submit", unique)["duplicate"] is True
    (again,) = client.call("submitMany", [unique])
    assert (again["id"], again["duplicate"]) == (first["id"], True)

    key = {"idempotencyKey": "parcel-18"}
    once = client.call("submit", {"job_type": "greet"}, key)
    assert client.call("submit", {"job_type": "greet"}, key)["id"] == once["id"]
    other = refusal(client, "submit", {"job_type": "other"}, key)
    assert (other["status"], other["code"]) == (422, "idempotency_mismatch")


def test_refusals_have_the_servers_codes(dsn: str, client: Driver, people: People) -> None:
    unknown = refusal(client, "get", str(uuid4()))
    assert (unknown["name"], unknown["status"], unknown["code"]) == ("ApiError", 404, "not_found")
    invalid = refusal(client, "submit", {"job_type": "greet", "priority": 1_000_000})
    assert invalid["code"] == "invalid_input"
    assert [one["field"] for one in invalid["fields"]] == ["body.priority"]
    viewer = people.new("viewer", "viewer").token
    with served(dsn) as url:
        with typescript_client(url, viewer) as stranger:
            assert refusal(stranger, "submit", {"job_type": "greet"})["code"] == "forbidden"
        with typescript_client(url, "lw_wrong") as nobody:
            assert refusal(nobody, "get", str(uuid4()))["code"] == "unauthenticated"
            assert refusal(nobody, "wait", str(uuid4()))["code"] == "unauthenticated"


def test_jobs_are_cancelled_retried_and_made_due(client: Driver) -> None:
    job = client.call("submit", {"job_type": "greet", "delay": 3600})
    assert client.call("runNow", job["id"])["id"] == job["id"]
    cancelled = client.call("cancel", job["id"], {"reason": "not needed"})
    assert (cancelled["status"], cancelled["cancel_reason"]) == ("cancelled", "not needed")
    assert refusal(client, "cancel", job["id"])["code"] == "refused"
    assert client.call("retry", job["id"])["status"] == "approved"


def test_jobs_are_approved_and_rejected(client: Driver, factory: JobFactory) -> None:
    factory.publish("costly", approval=Approval())
    first, second = (client.call("submit", {"job_type": "costly"}) for _ in range(2))
    assert first["status"] == "awaiting_approval"
    wrong = refusal(client, "approve", first["id"], {"seal": "other"})
    assert wrong["code"] == "refused"
    seal = client.call("get", first["id"])["seal"]
    approved = client.call("approve", first["id"], {"seal": seal, "comment": "fine"})
    assert (approved["status"], approved["approved_by"]) == ("approved", "admin")
    rejected = client.call("reject", second["id"], {"reason": "too much"})
    assert (rejected["status"], rejected["cancel_reason"]) == (
        "cancelled",
        "rejected: too much",
    )


def test_wait_ends_with_the_job(client: Driver, factory: JobFactory) -> None:
    assert client.call("wait", str(factory.completed())) == {"ok": True}
    failed = refusal(client, "wait", str(factory.failed("bad")))
    assert failed["name"] == "JobFailed"
    assert "failed: ValueError: no" in failed["message"]
    waiting = str(factory.submit("later"))
    assert refusal(client, "wait", waiting, {"timeoutMs": 0})["name"] == "TimeoutError"
    client.start("wait", waiting)
    (claim,) = factory.claim("later")
    factory.settle(claim, result='"late"')
    assert client.result() == "late"


def test_watch_yields_all_events_across_server_restart(
    dsn: str, factory: JobFactory, token: str
) -> None:
    job_id = str(factory.submit())
    with ExitStack() as stack:
        with served(dsn) as url:
            client = stack.enter_context(typescript_client(url, token))
            client.call("watch", job_id)
            events = [client.call("next")]
            (claim,) = factory.claim()
            events.append(client.call("next"))
            client.start("next")
        factory.settle(claim, result='{"ok": true}')
        with served(dsn, urlsplit(url).port or 0):
            events.append(client.result())
            assert client.call("next") is None
            # Another process continues where this one was, or ends at once after the end.
            with typescript_client(url, token) as other:
                other.call("watch", job_id, {"lastEventId": events[0]["id"]})
                again = [other.call("next"), other.call("next")]
                assert [one["id"] for one in again] == [one["id"] for one in events[1:]]
                assert other.call("next") is None
                other.call("watch", job_id, {"lastEventId": events[2]["id"]})
                assert other.call("next") is None
    assert [each["name"] for each in events] == ["job.state", "job.claimed", "job.completed"]
    assert events[-1]["job"]["result"] == {"ok": True}


def test_flow_is_listed_followed_and_waited_for(client: Driver, factory: JobFactory) -> None:
    jobs = [
        {"name": "join", "job_type": "join", "after": ["page"]},
        {"name": "page", "job_type": "page"},
    ]
    flow = client.call("submitFlow", {"name": "nightly", "tags": ["a&b"], "jobs": jobs})
    assert [one["id"] for one in client.call("listFlows", {"tag": "a&b"})] == [flow["id"]]
    assert client.call("listFlows", {"status": "failed", "name": "nightly"}) == []
    late = refusal(client, "waitFlow", flow["id"], {"timeoutMs": 0})
    assert late["name"] == "TimeoutError"
    client.start("watchFlow", flow["id"])
    for name in ("page", "join"):
        (claim,) = factory.claim(name)
        factory.settle(claim)
    events = client.result()
    assert events[-1]["name"] == "flow.completed"
    assert client.call("waitFlow", flow["id"])["counts"]["completed"] == 2
    failed = client.call("submitFlow", {"name": "broken", "jobs": [{"job_type": "page"}]})
    client.call("cancelFlow", failed["id"])
    assert refusal(client, "waitFlow", failed["id"])["name"] == "FlowFailed"
    assert refusal(client, "waitFlow", str(uuid4()))["code"] == "not_found"
