"""Limits over HTTP: shared by all lanes, so they require permission for everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.api.conftest import Ask, People
from tests.support.job_factory import JobFactory

LIMITS = "/admin/limits"
Acts = Callable[[], list[tuple[Any, ...]]]


async def test_limits_are_listed_and_shown_with_their_use(ask: Ask, people: People) -> None:
    vera = people.new("vera", "viewer")
    items = (await ask(vera, "GET", LIMITS)).json()["items"]
    assert [limit["name"] for limit in items] == ["anthropic", "ollama", "openai"]
    one = (await ask(vera, "GET", f"{LIMITS}/openai")).json()
    assert (one["max_concurrent"], one["running"], one["waiting"]) == (8, 0, 0)


async def test_limit_names_the_jobs_that_hold_it(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.publish("chat", limits=("openai",))
    factory.register(("chat",), name="desk:1")
    held = factory.running("chat")
    factory.running("plain")
    # Two calls at a time.
    factory.conn.execute(
        "update laneway.lease set limits = '{openai,openai}' where job_type = 'chat'"
    )
    vera = people.new("vera", "viewer")
    items = {each["name"]: each for each in (await ask(vera, "GET", LIMITS)).json()["items"]}
    (job,) = items["openai"]["jobs"]
    assert (job["id"], job["job_type"], job["lane"]) == (str(held.job_id), "chat", "default")
    assert (job["worker"], job["held"]) == ("desk:1", 2)
    assert items["anthropic"]["jobs"] == []
    one = (await ask(vera, "GET", f"{LIMITS}/openai")).json()
    assert one["jobs"] == items["openai"]["jobs"]


async def test_limit_is_put_replaced_and_deleted(
    ask: Ask, people: People, audit_entries: Acts
) -> None:
    olga = people.new("olga", "operator")
    path = f"{LIMITS}/gpu"
    made = await ask(olga, "PUT", path, json={"rate_count": 5, "rate_period_s": 60})
    assert (made.status_code, made.json()["max_concurrent"], made.json()["rate_count"]) == (
        201,
        1,
        5,
    )
    put = await ask(olga, "PUT", path, json={"max_concurrent": None})
    assert put.status_code == 200
    assert (put.json()["max_concurrent"], put.json()["rate_count"]) == (None, None)
    assert (await ask(olga, "DELETE", path)).status_code == 204
    assert (await ask(olga, "DELETE", path)).status_code == 404
    assert (await ask(olga, "GET", path)).status_code == 404
    assert [act[2:] for act in audit_entries()] == [("limit", "gpu", "done")] * 3


async def test_limit_that_is_needed_is_not_deleted(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.publish("chat", limits=("openai",))
    factory.register(("chat",))
    answer = await ask(people.new("olga", "operator"), "DELETE", f"{LIMITS}/openai")
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")


BAD: list[dict[str, Any]] = [
    {"max_concurrent": -1},
    {"rate_count": 5},
    {"scope": "galaxy"},
    {"name": "x"},
    {"rate_count": 5, "rate_period_s": 0.01},
]


async def test_bad_limit_is_refused(ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    for body in BAD:
        answer = await ask(olga, "PUT", f"{LIMITS}/gpu", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), body


async def test_grant_on_some_lanes_reaches_no_limit(
    ask: Ask, people: People, audit_entries: Acts
) -> None:
    otto = people.new("otto", "operator", lanes=["interactive"])
    for method, path in (("GET", ""), ("GET", "/openai"), ("PUT", "/openai"), ("DELETE", "/gpu")):
        body: dict[str, Any] = {"json": {}} if method == "PUT" else {}
        assert (await ask(otto, method, LIMITS + path, **body)).status_code == 403
    assert [act[4] for act in audit_entries()] == ["refused"] * 4
