"""Operators' POSTs with an Idempotency-Key; a freeze is done in parts, and still once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import httpx2
import psycopg
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from laneway.api.app import make_app
from laneway.api.http.idempotency import idempotency_guard
from laneway.control import freeze as freezing
from laneway.store.database import Database
from tests.api.conftest import Ask, People, Principal
from tests.support.job_factory import JobFactory

ADMIN = "/admin/workers"
FREEZE = f"{ADMIN}/freeze"
KEY = {"Idempotency-Key": "k1"}
Acts = Callable[[], list[tuple[Any, ...]]]
# Reasons of POSTs without a key.
WITHOUT_KEY = {
    "/login": "a browser follows a link that works once",
    "/logout": "ending a session again changes nothing",
    "/admin/tokens": "its answer holds a secret, which is never kept",
    "/admin/webhooks": "its answer may hold a secret",
    "/admin/webhooks/{name}/rotate": "its answer holds a secret",
}


def test_every_post_takes_a_key_but_for_a_reason(app: FastAPI) -> None:
    without = {
        route.path
        for route in app.routes
        if isinstance(route, APIRoute) and "POST" in (route.methods or ())
        if all(each.call is not idempotency_guard for each in route.dependant.dependencies)
    }
    assert without == WITHOUT_KEY.keys()


async def test_gate_is_moved_once(ask: Ask, people: People, audit_entries: Acts) -> None:
    olga = people.new("olga", "operator")
    shut = await ask(olga, "POST", f"{ADMIN}/pause", headers=KEY)
    opened = await ask(olga, "POST", f"{ADMIN}/resume", headers={"Idempotency-Key": "k2"})
    again = await ask(olga, "POST", f"{ADMIN}/pause", headers=KEY)
    assert (shut.content, shut.status_code) == (again.content, again.status_code)
    assert again.headers["idempotent-replayed"] == "true"
    assert opened.json()["paused"] is False
    status = await ask(olga, "GET", f"{ADMIN}/status")
    assert status.json()["paused"] is False
    assert [act[1] for act in audit_entries()] == ["gate.shut", "gate.opened"]


async def test_repeated_revoke_returns_same_token(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    admin, ann = people.new("admin", "platform_admin"), people.new("ann")
    row = conn.execute("select id from laneway.tokens where principal_id = %s", [ann.id])
    path = f"/admin/tokens/{row.fetchall()[0][0]}/revoke"
    first = await ask(admin, "POST", path, headers=KEY)
    again = await ask(admin, "POST", path, headers=KEY)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.content == again.content
    assert (await ask(admin, "POST", path)).status_code == 409


async def test_lanes_are_thawed_once(ask: Ask, people: People, audit_entries: Acts) -> None:
    olga = people.new("olga", "operator")
    await ask(olga, "POST", FREEZE, json={"lanes": ["system"]})
    first = await ask(olga, "POST", f"{ADMIN}/thaw", json={"lanes": ["system"]}, headers=KEY)
    again = await ask(olga, "POST", f"{ADMIN}/thaw", json={"lanes": ["system"]}, headers=KEY)
    assert first.json()["lanes"][0]["enabled"] is True
    assert again.content == first.content
    assert [act[1] for act in audit_entries()] == ["lane.frozen", "lane.thawed"]


# -- a freeze, which waits between its parts --------------------------------------------------


class Waiting:
    """Pauses requests that wait for quiet lanes while a test audit_entries."""

    def __init__(self) -> None:
        self.count = 0
        self.came = asyncio.Condition()
        self.goes_on = asyncio.Event()

    async def pause(self, seconds: float) -> None:
        async with self.came:
            self.count += 1
            self.came.notify_all()
        await self.goes_on.wait()

    async def until(self, count: int) -> None:
        async with self.came:
            await self.came.wait_for(lambda: self.count >= count)


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    waiting = Waiting()
    monkeypatch.setattr(freezing, "wait", partial(freezing.wait, pause=waiting.pause))
    return waiting


@pytest.fixture
async def narrow(dsn: str, database: Database) -> AsyncIterator[Ask]:
    """Another replica, with two connections."""
    pool = Database(dsn, database.settings, role="tests api", size=2)
    app = make_app(pool.settings, pool)
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:

        async def ask(who: Principal, method: str, path: str, **more: Any) -> httpx2.Response:
            headers = {**who.headers, **more.pop("headers", {})}
            return await client.request(method, path, headers=headers, **more)

        yield ask
    await app.state.close()
    await pool.close()


def enabled(conn: psycopg.Connection[Any]) -> set[str]:
    rows = conn.execute("select name from laneway.worker_lanes where enabled").fetchall()
    return {name for (name,) in rows}


def begun(conn: psycopg.Connection[Any]) -> int:
    rows = conn.execute("select from laneway.idempotency where status is null").fetchall()
    return len(rows)


def freeze_of(ask: Ask, who: Principal, key: str = "k1", **more: Any) -> asyncio.Task[Any]:
    body = {"lanes": ["interactive"], "deadline": 10, **more}
    return asyncio.create_task(
        ask(who, "POST", FREEZE, json=body, headers={"Idempotency-Key": key})
    )


async def test_freeze_is_answered_again_as_it_was(
    ask: Ask, people: People, factory: JobFactory, audit_entries: Acts
) -> None:
    olga = people.new("olga", "operator")
    claim = factory.running("ingestion")
    body = {"lanes": ["interactive"]}
    first = await ask(olga, "POST", FREEZE, json=body, headers=KEY)
    factory.settle(claim)
    again = await ask(olga, "POST", FREEZE, json=body, headers=KEY)
    assert (first.json()["running"], again.content) == (1, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    other = await ask(olga, "POST", FREEZE, json={"lanes": ["system"]}, headers=KEY)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    assert [act[1] for act in audit_entries()] == ["lane.frozen"]


async def test_repeated_freeze_waits_with_first(
    ask: Ask,
    narrow: Ask,
    people: People,
    factory: JobFactory,
    waiting: Waiting,
    audit_entries: Acts,
) -> None:
    olga = people.new("olga", "operator")
    claim = factory.running("ingestion")
    first = freeze_of(ask, olga)
    await waiting.until(1)
    again = freeze_of(narrow, olga)
    await waiting.until(2)
    factory.settle(claim)
    waiting.goes_on.set()
    one, other = (await first).json(), (await again).json()
    assert (one["is_quiet"], other["is_quiet"]) == (True, True)
    assert one == other
    assert [act[1] for act in audit_entries()] == ["lane.frozen"]


async def test_freeze_whose_server_went_away_is_gone_on_with(
    ask: Ask,
    narrow: Ask,
    people: People,
    factory: JobFactory,
    waiting: Waiting,
    audit_entries: Acts,
) -> None:
    olga = people.new("olga", "operator")
    claim = factory.running("ingestion")
    first = freeze_of(narrow, olga)
    await waiting.until(1)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert "interactive" not in enabled(factory.conn)
    again = freeze_of(ask, olga)
    await waiting.until(2)
    factory.settle(claim)
    waiting.goes_on.set()
    assert (await again).json()["is_quiet"] is True
    assert [act[1] for act in audit_entries()] == ["lane.frozen"]
    assert begun(factory.conn) == 0


async def test_or_thaw_thaws_lanes_of_first_freeze_for_any_caller(
    ask: Ask, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    olga = people.new("olga", "operator")
    factory.running("ingestion")

    async def lost(*given: Any, **more: Any) -> Any:
        raise ConnectionError("as if the process had died here")

    body = {"lanes": ["interactive"], "deadline": 0, "or_thaw": True}
    before = enabled(factory.conn)
    with monkeypatch.context() as patched:
        patched.setattr(freezing, "wait", lost)
        died = await ask(olga, "POST", FREEZE, json=body, headers=KEY)
    assert died.status_code == 500
    assert "interactive" not in enabled(factory.conn)
    again = (await ask(olga, "POST", FREEZE, json=body, headers=KEY)).json()
    assert (again["is_thawed"], enabled(factory.conn)) == (True, before)


@pytest.mark.parametrize("or_thaw", [True, False])
async def test_freeze_that_is_left_with_or_thaw_may_be_sent_again(
    ask: Ask, people: People, factory: JobFactory, waiting: Waiting, or_thaw: bool
) -> None:
    olga = people.new("olga", "operator")
    before = enabled(factory.conn)
    claim = factory.running("ingestion")
    first = freeze_of(ask, olga, or_thaw=or_thaw)
    await waiting.until(1)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert (enabled(factory.conn) == before) is or_thaw
    assert begun(factory.conn) == (0 if or_thaw else 1)
    factory.settle(claim)
    again = await freeze_of(ask, olga, or_thaw=or_thaw)
    assert again.json()["is_quiet"] is True
    assert "interactive" not in enabled(factory.conn)


async def test_freeze_that_was_refused_may_be_sent_again(
    ask: Ask, people: People, factory: JobFactory, waiting: Waiting
) -> None:
    olga = people.new("olga", "operator")
    claim = factory.running("ingestion")
    first = freeze_of(ask, olga)
    await waiting.until(1)
    await ask(olga, "PATCH", f"{ADMIN}/lanes/interactive", json={"enabled": True})
    waiting.goes_on.set()
    assert (await first).status_code == 409
    factory.settle(claim)
    assert (await freeze_of(ask, olga)).json()["is_quiet"] is True


async def test_freeze_thawed_by_another_is_not_reported_as_quiet(
    ask: Ask, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    olga = people.new("olga", "operator")
    wait = freezing.wait

    async def taken_back_meanwhile(*given: Any) -> Any:
        seen = await wait(*given)
        factory.conn.execute("delete from laneway.idempotency")
        return seen

    with monkeypatch.context() as patched:
        patched.setattr(freezing, "wait", taken_back_meanwhile)
        assert (await freeze_of(ask, olga)).status_code == 409
    assert (await freeze_of(ask, olga)).json()["is_quiet"] is True


async def test_repeated_freeze_returns_first_response_after_thaw(
    ask: Ask, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    olga = people.new("olga", "operator")
    factory.running("ingestion")
    wait, turns = freezing.wait, [Waiting(), Waiting()]
    first_turn, second_turn = turns

    async def until_told(*given: Any) -> Any:
        # The deadline has passed when the test resumes it.
        turn = turns.pop(0)
        return await wait(*given, clock=lambda: 1000.0 * turn.goes_on.is_set(), pause=turn.pause)

    monkeypatch.setattr(freezing, "wait", until_told)
    first = freeze_of(ask, olga, or_thaw=True)
    await first_turn.until(1)
    again = freeze_of(ask, olga, or_thaw=True)
    await second_turn.until(1)
    first_turn.goes_on.set()
    answered = await first
    second_turn.goes_on.set()
    replayed = await again
    assert (answered.json()["is_thawed"], replayed.content) == (True, answered.content)
    assert replayed.headers["idempotent-replayed"] == "true"


async def test_many_freezes_that_wait_hold_no_connection(
    narrow: Ask, people: People, factory: JobFactory, waiting: Waiting
) -> None:
    olga = people.new("olga", "operator")
    claim = factory.running("ingestion")
    under_way = [freeze_of(narrow, olga, key=f"k{n}", or_thaw=True) for n in range(6)]
    await waiting.until(6)
    assert (await narrow(olga, "GET", f"{ADMIN}/status")).status_code == 200
    factory.settle(claim)
    waiting.goes_on.set()
    answers = await asyncio.gather(*under_way)
    assert [answer.json()["is_quiet"] for answer in answers] == [True] * 6
