"""Lanes over HTTP: callers view and tune only lanes in their scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.api.conftest import Ask, People
from tests.support.job_factory import JobFactory

LANES = "/admin/workers/lanes"
Acts = Callable[[], list[tuple[Any, ...]]]


async def test_lanes_are_listed_with_policy_use_and_depth(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.running("ingestion")
    factory.submit("ingestion")
    answer = await ask(people.new("vera", "viewer"), "GET", LANES)
    assert answer.status_code == 200
    lanes = {lane["name"]: lane for lane in answer.json()["items"]}
    assert list(lanes) == ["analysis", "default", "interactive", "maintenance", "system"]
    interactive = lanes["interactive"]
    assert (interactive["slots_used"], interactive["utilization"]) == (1, 0.5)
    assert (interactive["depth"], interactive["waiting"][0]["job_type"]) == (1, "ingestion")


async def test_pages_of_lanes_follow_each_other(ask: Ask, people: People) -> None:
    vera = people.new("vera", "viewer")
    names, cursor = [], None
    while True:
        params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await ask(vera, "GET", LANES, params=params)).json()
        names += [lane["name"] for lane in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert names == ["analysis", "default", "interactive", "maintenance", "system"]


async def test_lane_is_created_tuned_looked_back_at_and_rolled_back(
    ask: Ask, people: People, audit_entries: Acts
) -> None:
    olga = people.new("olga", "operator")
    made = await ask(olga, "POST", LANES, json={"name": "media", "max_slots": 3})
    assert made.status_code == 201
    assert made.headers["location"] == f"{LANES}/media"
    assert (made.json()["max_slots"], made.json()["updated_by"]) == (3, "olga")

    tuned = await ask(olga, "PATCH", f"{LANES}/media", json={"max_slots": None, "enabled": False})
    assert (tuned.json()["max_slots"], tuned.json()["enabled"]) == (None, False)
    assert tuned.json()["poll_interval_ms"] == 5000

    history = (await ask(olga, "GET", f"{LANES}/media/history")).json()["items"]
    assert [change["verb"] for change in history] == ["changed", "created"]

    back = await ask(olga, "POST", f"{LANES}/media/rollback")
    assert back.json()["change"]["after"]["max_slots"] == 3
    assert [act[0] for act in audit_entries()] == ["olga"] * 3
    assert {act[4] for act in audit_entries()} == {"done"}


async def test_lane_is_created_once_per_idempotency_key(
    ask: Ask, people: People, audit_entries: Acts
) -> None:
    olga = people.new("olga", "operator")
    key = {"Idempotency-Key": "lane-1"}
    first, again = [
        await ask(olga, "POST", LANES, json={"name": "media"}, headers=key) for _ in range(2)
    ]
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["location"] == first.headers["location"]
    assert len(audit_entries()) == 1


async def test_second_lane_of_a_name_is_a_conflict(ask: Ask, people: People) -> None:
    answer = await ask(people.new("olga", "operator"), "POST", LANES, json={"name": "system"})
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")


BAD_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"max_slots": 10_001}, "max_slots"),
    ({"max_slots": "3"}, "max_slots"),
    ({"max_slots": True}, "max_slots"),
    ({"poll_interval_ms": 99}, "poll_interval_ms"),
    ({"lease_seconds": None}, "lease_seconds"),
    ({"enabled": "yes"}, "enabled"),
    ({"job_types": ["a", "a"]}, "job_types[1]"),
    ({"name": "other"}, "name"),
    ({"updated_by": "me"}, "updated_by"),
    ({}, "lane"),
]


async def test_bad_change_names_its_field(ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    for change, field in BAD_CHANGES:
        answer = await ask(olga, "PATCH", f"{LANES}/system", json=change)
        assert answer.status_code == 422, change
        assert answer.json()["errors"][0]["field"].endswith(field)


async def test_missing_name_lists_nearest_names_to_reader_of_all(ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    answer = await ask(olga, "GET", f"{LANES}/interactve")
    assert answer.json()["detail"].startswith("no lane interactve; did you mean interactive?")
    answer = await ask(olga, "PATCH", f"{LANES}/interactve", json={"max_slots": 1})
    assert "; did you mean interactive?" in answer.json()["detail"]
    answer = await ask(olga, "GET", "/admin/limits/opnai")
    assert answer.json()["detail"].startswith("no limit opnai; did you mean openai?")
    answer = await ask(olga, "DELETE", "/admin/schedules/nightly")
    assert answer.json()["detail"].startswith("no schedule nightly; none exists yet; to create")


async def test_missing_name_lists_no_names_to_narrow_reader(ask: Ask, people: People) -> None:
    nora = people.new("nora", "operator", lanes=["system", "gone"])
    for name in ("interactive", "interactve", "gone"):
        answer = await ask(nora, "GET", f"{LANES}/{name}")
        assert (answer.status_code, answer.json()["detail"]) == (404, f"no lane {name}")


NO_LANES = ["none", "No Such", "x" * 64, "%00", "a'; drop table x"]


async def test_lane_that_is_not_there_is_not_found_or_no_name(ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    for name in NO_LANES:
        answer = await ask(olga, "PATCH", f"{LANES}/{name}", json={"enabled": True})
        assert answer.status_code == (404 if name == "none" else 422), name


async def test_grant_on_some_lanes_sees_and_tunes_those_only(
    ask: Ask, people: People, audit_entries: Acts
) -> None:
    otto = people.new("otto", "operator", lanes=["interactive"])
    seen = (await ask(otto, "GET", LANES)).json()["items"]
    assert [lane["name"] for lane in seen] == ["interactive"]

    own = await ask(otto, "PATCH", f"{LANES}/interactive", json={"max_slots": 5})
    assert own.status_code == 200
    for method, path in (("PATCH", "system"), ("GET", "system/history"), ("PATCH", "none")):
        body = {"json": {"max_slots": 5}} if method == "PATCH" else {}
        foreign = await ask(otto, method, f"{LANES}/{path}", **body)
        assert foreign.status_code == 404, path
    assert (await ask(otto, "GET", f"{LANES}/system")).status_code == 404
    assert [act[3:] for act in audit_entries()] == [
        ("interactive", "done"), ("system", "refused"), ("system", "refused"), ("none", "refused"),
    ]  # fmt: skip


WIDE: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "", {"name": "mine"}),
    ("PATCH", "/interactive", {"job_types": ["restore"]}),
    ("POST", "/interactive/rollback", {}),
]


async def test_change_of_several_lanes_requires_all_of_them(
    ask: Ask, people: People, audit_entries: Acts
) -> None:
    otto = people.new("otto", "operator", lanes=["interactive"])
    for method, path, body in WIDE:
        answer = await ask(otto, method, LANES + path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        actor, action, *_, outcome = audit_entries()[-1]
        assert (actor, outcome) == ("otto", "refused")
        assert action.startswith(f"{method} {LANES}")
    assert len(audit_entries()) == len(WIDE)


async def test_lane_that_is_seen_but_not_managed_is_forbidden(
    ask: Ask, people: People, audit_entries: Acts
) -> None:
    otto = people.new("otto", "operator", lanes=["interactive"])
    people.grant(otto.id, "viewer")
    answer = await ask(otto, "PATCH", f"{LANES}/system", json={"max_slots": 5})
    assert answer.status_code == 403
    assert [act[4] for act in audit_entries()] == ["refused"]


async def test_workspace_grant_does_not_cover_lanes(ask: Ask, people: People) -> None:
    """Lanes run the jobs of all workspaces."""
    wanda = people.new("wanda", "operator", workspace="team")
    assert (await ask(wanda, "GET", LANES)).status_code == 403
    assert (await ask(wanda, "POST", LANES, json={"name": "x"})).status_code == 403


async def test_token_narrowed_to_lanes_narrows_its_principal(ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator", token_lanes=["system"])
    seen = (await ask(olga, "GET", LANES)).json()["items"]
    assert [lane["name"] for lane in seen] == ["system"]


async def test_lane_shows_waiting_jobs_by_type_and_priority(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    for priority in (5, 5, 0):
        factory.submit("ingestion", priority=priority)
    # A released job waits with the others of its priority.
    claim = factory.claim("ingestion")[0]
    factory.settle(claim, "release")
    factory.submit("polarity", priority=9)
    factory.submit("restore")
    answer = await ask(people.new("vera", "viewer"), "GET", f"{LANES}/interactive")
    assert answer.status_code == 200, answer.text
    seen = answer.json()
    assert (seen["max_slots"], seen["slots_used"], seen["depth"]) == (2, 0, 4)
    rows = [
        (each["job_type"], each["priority"], each["depth"], each["depth_is_capped"])
        for each in seen["by_priority"]
    ]
    assert rows == [
        ("polarity", 9, 1, False), ("ingestion", 5, 2, False), ("ingestion", 0, 1, False),
    ]  # fmt: skip
    assert all(each["oldest_wait_s"] >= 0 for each in seen["by_priority"])


async def test_lane_out_of_reach_is_not_there(ask: Ask, people: People) -> None:
    larry = people.new("larry", "viewer", lanes=["interactive"])
    assert (await ask(larry, "GET", f"{LANES}/interactive")).status_code == 200
    assert (await ask(larry, "GET", f"{LANES}/system")).status_code == 404
    vera = people.new("vera", "viewer")
    assert (await ask(vera, "GET", f"{LANES}/none")).status_code == 404
    assert (await ask(vera, "GET", f"{LANES}/No!")).status_code == 422


async def test_job_type_names_its_lane_in_reach(ask: Ask, people: People) -> None:
    vera = people.new("vera", "viewer")
    larry = people.new("larry", "viewer", lanes=["interactive"])
    for job_type, lane, status in (("polarity", "interactive", 200), ("greet", "default", 404)):
        path = f"/admin/workers/types/lane?job_type={job_type}"
        assert (await ask(vera, "GET", path)).json()["name"] == lane
        assert (await ask(larry, "GET", path)).status_code == status
    assert (await ask(vera, "GET", "/admin/workers/types/lane")).status_code == 422


async def test_all_lanes_are_replaced_in_one_request(
    ask: Ask, people: People, audit_entries: Acts
) -> None:
    olga = people.new("olga", "operator")
    body = {"lanes": {"docs": {"max_slots": 20, "job_types": ["ingestion"]}}}
    planned = await ask(olga, "PUT", LANES, json={**body, "dry_run": True})
    assert (planned.status_code, planned.json()["dry_run"], audit_entries()) == (200, True, [])
    done = await ask(olga, "PUT", LANES, json=body)
    assert done.json() == {**planned.json(), "dry_run": False}
    assert {each["name"]: each["action"] for each in done.json()["changes"]} == {
        "docs": "created",
        "interactive": "deleted",
        "maintenance": "deleted",
        "system": "deleted",
    }
    listed = (await ask(olga, "GET", LANES)).json()["items"]
    assert [lane["name"] for lane in listed] == ["analysis", "default", "docs"]
    assert [act[:2] for act in audit_entries()] == [("olga", "lanes.loaded")]
    refused: list[dict[str, Any]] = [
        {"docs": {"max_slots": -1}}, {"docs": 3}, {"No Name": {}}, {"docs": {"x": 1}},
    ]  # fmt: skip
    for wrong in refused:
        answer = await ask(olga, "PUT", LANES, json={"lanes": wrong})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), wrong
