"""Operators over HTTP: view, pause, freeze, cancel running jobs, reorder waiting ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from laneway.control import jobs
from tests.api.conftest import Ask, People
from tests.support.job_factory import JobFactory

ADMIN = "/admin/workers"
Acts = Callable[[], list[tuple[Any, ...]]]


async def test_status_shows_slots_jobs_waits_and_workers(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.register(("ingestion",), name="host:7")
    claim = factory.running("ingestion")
    factory.submit("ingestion")
    answer = await ask(people.new("vera", "viewer"), "GET", f"{ADMIN}/status")
    assert answer.status_code == 200
    seen = answer.json()
    assert (seen["paused"], seen["leader"]) == (False, None)
    (active,) = seen["active"]
    assert (active["id"], active["lane"], active["worker"]) == (
        str(claim.job_id),
        "interactive",
        "host:7",
    )
    assert active["claimed_at"]
    assert active["held_s"] >= 0
    (lane,) = [lane for lane in seen["lanes"] if lane["name"] == "interactive"]
    assert (lane["slots_used"], lane["depth"]) == (1, 1)
    assert lane["oldest_wait_s"] is not None
    assert [worker["name"] for worker in seen["workers"]] == ["host:7"]


async def test_status_lists_silent_workers(ask: Ask, people: People, factory: JobFactory) -> None:
    factory.register(serves=("interactive",), name="host:7")
    vera, otto = people.new("vera", "viewer"), people.new("otto", "viewer", lanes=["system"])
    silence = "update laneway.workers set seen_at = seen_at - interval '95 seconds'"
    for change, live, silent in (
        ("select", ["host:7"], []),
        (silence, [], ["host:7"]),
        ("update laneway.workers set stopped_at = seen_at", [], []),
    ):
        factory.conn.execute(change.encode())
        status = (await ask(vera, "GET", f"{ADMIN}/status")).json()
        assert [each["name"] for each in status["workers"]] == live
        assert [each["name"] for each in status["silent"]] == silent
        assert all(each["state"] == "live" for each in status["workers"])
        assert all(0 <= each["seen_s"] < 45 for each in status["workers"])
        assert all(each["seen_s"] > 45 for each in status["silent"])
        assert all(each["state"] == "dead" for each in status["silent"])
        assert (await ask(otto, "GET", f"{ADMIN}/status")).json()["silent"] == []


async def test_status_of_permitted_lanes_hides_others(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.register(("ingestion",), serves=("interactive",))
    factory.running("ingestion")
    factory.submit("ingestion")
    vera = people.new("vera", "viewer", lanes=["system"])
    seen = (await ask(vera, "GET", f"{ADMIN}/status")).json()
    assert [lane["name"] for lane in seen["lanes"]] == ["system"]
    assert (seen["active"], seen["workers"], seen["oldest_transaction"]) == ([], [], None)


async def test_pause_gate_is_shut_and_opened(ask: Ask, people: People, audit_entries: Acts) -> None:
    olga = people.new("olga", "operator")
    shut = (await ask(olga, "POST", f"{ADMIN}/pause")).json()
    assert (shut["paused"], shut["paused_by"]) == (True, "olga")
    assert (await ask(olga, "POST", f"{ADMIN}/resume")).json()["paused"] is False
    assert [act[2] for act in audit_entries()] == ["gate", "gate"]


VERBS = ["pause", "resume", "freeze", "thaw"]


async def test_global_pause_requires_every_lane(
    ask: Ask, people: People, audit_entries: Acts
) -> None:
    otto = people.new("otto", "operator", lanes=["interactive"])
    for verb in VERBS:
        assert (await ask(otto, "POST", f"{ADMIN}/{verb}")).status_code == 403
    assert [act[4] for act in audit_entries()] == ["refused"] * len(VERBS)


async def test_freeze_returns_running_jobs_at_once(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.register(("ingestion",))
    claim = factory.running("ingestion")
    olga = people.new("olga", "operator")
    frozen = (await ask(olga, "POST", f"{ADMIN}/freeze", json={"lanes": ["interactive"]})).json()
    assert (frozen["is_quiet"], frozen["running"]) == (False, 1)
    assert frozen["lanes"][0]["jobs"][0]["id"] == str(claim.job_id)
    factory.settle(claim)
    again = (await ask(olga, "POST", f"{ADMIN}/freeze", json={"lanes": ["interactive"]})).json()
    assert again["is_quiet"] is True
    thawed = (await ask(olga, "POST", f"{ADMIN}/thaw")).json()
    assert thawed == {"lanes": [{"lane": "interactive", "was_enabled": True, "enabled": True}]}


async def test_no_freeze_holds_a_request_for_long(ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    answer = await ask(olga, "POST", f"{ADMIN}/freeze", json={"deadline": 11})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "body.deadline")


async def test_permitted_lanes_are_frozen_and_hidden_ones_not_found(
    ask: Ask, people: People
) -> None:
    otto = people.new("otto", "operator", lanes=["system"])
    own = await ask(otto, "POST", f"{ADMIN}/freeze", json={"lanes": ["system"]})
    assert own.status_code == 200
    foreign = await ask(otto, "POST", f"{ADMIN}/freeze", json={"lanes": ["system", "default"]})
    assert foreign.status_code == 404


async def test_running_job_is_asked_to_stop(ask: Ask, people: People, factory: JobFactory) -> None:
    claim = factory.running("ingestion")
    olga = people.new("olga", "operator")
    path = f"{ADMIN}/jobs/{claim.job_id}/cancel"
    answer = await ask(olga, "POST", path, json={"reason": "too slow"})
    assert answer.status_code == 200
    assert (answer.json()["status"], answer.json()["lane"]) == ("running", "interactive")
    assert answer.json()["cancel_requested_at"] is not None


async def test_only_running_jobs_are_cancelled_here(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    olga = people.new("olga", "operator")
    for job_id in (factory.completed(), factory.submit()):
        answer = await ask(olga, "POST", f"{ADMIN}/jobs/{job_id}/cancel")
        assert (answer.status_code, answer.json()["code"]) == (409, "refused")


async def test_job_that_no_longer_runs_when_it_is_cancelled_waits_on(
    ask: Ask,
    people: People,
    factory: JobFactory,
    monkeypatch: pytest.MonkeyPatch,
    audit_entries: Acts,
) -> None:
    claim = factory.running()
    olga = people.new("olga", "operator")
    cancel = jobs.cancel

    async def released_meanwhile(*given: Any, **more: Any) -> Any:
        factory.settle(claim, "release")
        return await cancel(*given, **more)

    monkeypatch.setattr(jobs, "cancel", released_meanwhile)
    answer = await ask(olga, "POST", f"{ADMIN}/jobs/{claim.job_id}/cancel")
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")
    assert [each.job_id for each in factory.claim()] == [claim.job_id]
    assert audit_entries() == []


async def test_only_waiting_jobs_take_another_priority(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    olga = people.new("olga", "operator")
    done, running, waiting = factory.completed(), factory.running().job_id, factory.submit()
    for job_id, status in ((done, 409), (running, 409), (waiting, 200)):
        path = f"{ADMIN}/jobs/{job_id}/priority"
        answer = await ask(olga, "PATCH", path, json={"priority": 7})
        assert answer.status_code == status
    assert answer.json()["priority"] == 7


NO_PRIORITIES: list[dict[str, Any]] = [
    {},
    {"priority": 2**15},
    {"priority": "7"},
    {"priority": None},
]


async def test_priority_is_a_whole_number_in_its_range(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    olga = people.new("olga", "operator")
    path = f"{ADMIN}/jobs/{factory.submit()}/priority"
    for body in NO_PRIORITIES:
        assert (await ask(olga, "PATCH", path, json=body)).status_code == 422, body


async def test_job_out_of_reach_is_not_there(
    ask: Ask, people: People, factory: JobFactory, audit_entries: Acts
) -> None:
    job_id = factory.submit("ingestion", workspace="theirs")
    lane = people.new("lane", "operator", lanes=["system"])
    team = people.new("team", "operator", workspace="ours")
    paths: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", f"jobs/{job_id}/cancel", {}),
        ("POST", f"jobs/{uuid4()}/cancel", {}),
        ("PATCH", f"jobs/{job_id}/priority", {"priority": 1}),
    ]
    for who in (lane, team):
        for method, path, body in paths:
            assert (await ask(who, method, f"{ADMIN}/{path}", json=body)).status_code == 404
    assert [(act[0], act[4]) for act in audit_entries()] == [
        (who.name, "refused") for who in (lane, team) for _ in paths
    ]


async def test_job_that_may_be_read_but_not_managed_is_forbidden(
    ask: Ask, people: People, factory: JobFactory, audit_entries: Acts
) -> None:
    job_id = factory.submit("ingestion")
    otto = people.new("otto", "operator", lanes=["system"])
    people.grant(otto.id, "viewer")
    path = f"{ADMIN}/jobs/{job_id}/priority"
    assert (await ask(otto, "PATCH", path, json={"priority": 1})).status_code == 403
    path = f"{ADMIN}/jobs/{uuid4()}/priority"
    assert (await ask(otto, "PATCH", path, json={"priority": 1})).status_code == 404
    assert [(act[2], act[3], act[4]) for act in audit_entries()] == [
        ("job", str(job_id), "refused")
    ]


async def test_operator_of_a_workspace_manages_its_jobs(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    team = people.new("team", "operator", workspace="ours")
    path = f"{ADMIN}/jobs/{factory.submit('ingestion', workspace='ours')}/priority"
    assert (await ask(team, "PATCH", path, json={"priority": 1})).status_code == 200
