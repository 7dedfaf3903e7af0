"""One worker drained and resumed over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.api.conftest import Ask, People
from tests.support.job_factory import JobFactory

ADMIN = "/admin/workers"
Acts = Callable[[], list[tuple[Any, ...]]]


async def test_status_shows_drained_worker_until_resume(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    path = f"{ADMIN}/{factory.register()}"
    olga, vera = people.new("olga", "operator"), people.new("vera", "viewer")
    drained = await ask(olga, "POST", f"{path}/drain")
    assert (drained.status_code, drained.json()["drain_requested_by"]) == (200, "olga")
    (worker,) = (await ask(vera, "GET", f"{ADMIN}/status")).json()["workers"]
    heard = {name: worker[name] for name in ("seen_at", "seen_s")}
    assert worker == {**drained.json(), **heard}
    assert (worker["transport"], worker["memory_bytes"]) == ("database", None)
    assert (await ask(olga, "POST", f"{path}/resume")).json()["drain_requested_at"] is None


async def test_drain_with_a_key_is_done_once(
    ask: Ask, people: People, factory: JobFactory, audit_entries: Acts
) -> None:
    path = f"{ADMIN}/{factory.register()}"
    olga = people.new("olga", "operator")
    key = {"Idempotency-Key": "k"}
    first = await ask(olga, "POST", f"{path}/drain", headers=key)
    await ask(olga, "POST", f"{path}/resume")
    again = await ask(olga, "POST", f"{path}/drain", headers=key)
    assert again.json() == first.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len(audit_entries()) == 2
    (worker,) = (await ask(olga, "GET", f"{ADMIN}/status")).json()["workers"]
    assert worker["drain_requested_at"] is None


async def test_worker_that_is_gone_or_was_never_there_is_not_drained(
    ask: Ask, people: People, factory: JobFactory, audit_entries: Acts
) -> None:
    olga = people.new("olga", "operator")
    path = f"{ADMIN}/{factory.register()}/drain"
    factory.conn.execute("update laneway.workers set stopped_at = seen_at")
    gone = await ask(olga, "POST", path)
    assert (gone.status_code, gone.json()["code"]) == (409, "refused")
    assert (await ask(olga, "POST", f"{ADMIN}/{uuid4()}/drain")).status_code == 404
    assert (await ask(olga, "POST", f"{ADMIN}/unknown/drain")).status_code == 422
    assert audit_entries() == []


@pytest.mark.parametrize(
    "serves, status, kept",
    [
        (("interactive",), 200, ["done"]),
        (("interactive", "system"), 403, ["refused"]),
        (None, 403, ["refused"]),
        (("system",), 404, ["refused"]),
    ],
)
async def test_worker_drain_requires_every_lane_it_serves(
    ask: Ask,
    people: People,
    factory: JobFactory,
    audit_entries: Acts,
    serves: tuple[str, ...] | None,
    status: int,
    kept: list[str],
) -> None:
    otto = people.new("otto", "operator", lanes=["interactive"])
    path = f"{ADMIN}/{factory.register(serves=serves)}/drain"
    assert (await ask(otto, "POST", path)).status_code == status
    assert [act[4] for act in audit_entries()] == kept
