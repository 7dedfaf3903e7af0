"""The audit over HTTP: filtered, newest first, page by page."""

from __future__ import annotations

from typing import Any

from tests.api.conftest import Ask, People

AUDIT = "/admin/audit"


async def test_audit_entry_has_actor_action_origin_and_outcome(ask: Ask, people: People) -> None:
    admin = people.new("admin", "platform_admin")
    vera = people.new("vera", "viewer")
    asked = {"X-Request-Id": "r-1"}
    await ask(admin, "POST", "/admin/workers/pause", headers=asked)
    await ask(vera, "POST", "/admin/workers/pause")
    refused, done = (await ask(admin, "GET", AUDIT)).json()["items"]
    assert (done["actor"], done["door"], done["outcome"]) == ("admin", "http", "done")
    assert (done["request_id"], done["principal_id"]) == ("r-1", str(admin.id))
    assert (refused["actor"], refused["outcome"]) == ("vera", "refused")
    assert refused["action"] == "POST /admin/workers/pause"


async def test_audit_entry_marks_unverified_claims_of_caller(ask: Ask, people: People) -> None:
    admin = people.new("admin", "platform_admin")

    async def claimed(**headers: str) -> list[str]:
        asked = {name.replace("_", "-"): value for name, value in headers.items()}
        await ask(admin, "POST", "/admin/workers/pause", headers=asked)
        newest, *_ = (await ask(admin, "GET", AUDIT)).json()["items"]
        assert newest["address"] == "127.0.0.1"
        words: list[str] = newest["claimed"]
        return words

    assert await claimed() == []
    assert await claimed(X_Forwarded_For="203.0.113.9") == []
    assert await claimed(Laneway_Door="cli") == ["door"]
    assert await claimed(Laneway_Door="ui", X_Request_Id="r-1") == ["request_id"]
    assert await claimed(Laneway_Door="mcp", X_Request_Id="r-1") == ["door", "request_id"]
    # A caller cannot send an id that looks like one of the server's.
    made = (await ask(None, "GET", "/healthz")).headers["x-request-id"]
    assert await claimed(X_Request_Id=made) == []
    newest, *_ = (await ask(admin, "GET", AUDIT)).json()["items"]
    assert newest["request_id"] != made


async def test_refusal_is_kept_however_the_object_was_called(ask: Ask, people: People) -> None:
    admin = people.new("admin", "platform_admin")
    otto = people.new("otto", "operator", lanes=["interactive"])
    vera = people.new("vera", "viewer")
    long = "".join(f"{number:x}" for number in range(5000, 8000))
    for name in (long, "é" * 600, "%00", "%ED%A0%80"):
        path = f"/admin/workers/lanes/{name}"
        assert (await ask(otto, "PATCH", path, json={"max_slots": 1})).status_code == 404
        assert (await ask(vera, "PATCH", path, json={"max_slots": 1})).status_code == 403
    kept = (await ask(admin, "GET", AUDIT, params={"outcome": "refused"})).json()["items"]
    assert [act["actor"] for act in kept] == ["vera", "otto"] * 4
    found = {"outcome": "refused", "kind": "lane", "name": long[:512]}
    assert len((await ask(admin, "GET", AUDIT, params=found)).json()["items"]) == 1


async def test_filters_and_pages_of_the_audit(ask: Ask, people: People) -> None:
    admin = people.new("admin", "platform_admin")
    for verb in ("pause", "resume", "pause"):
        await ask(admin, "POST", f"/admin/workers/{verb}")
    first = (await ask(admin, "GET", AUDIT, params={"limit": 2})).json()
    rest = {"limit": 2, "cursor": first["next_cursor"]}
    second = (await ask(admin, "GET", AUDIT, params=rest)).json()
    ids = [act["id"] for act in (*first["items"], *second["items"])]
    assert len(ids) == 3
    assert ids == sorted(ids, reverse=True)

    async def found(**params: Any) -> int:
        return len((await ask(admin, "GET", AUDIT, params=params)).json()["items"])

    assert await found(actor="admin", kind="gate", door="http", outcome="done") == 3
    assert await found(actor="nobody") == 0
    assert await found(outcome="refused") == 0
    assert await found(since="2999-01-01T00:00:00Z") == 0
    assert await found(since="2000-01-01T00:00:00+02:00") == 3


BAD: list[dict[str, str | int]] = [
    {"door": "window"},
    {"since": "2020-01-01T00:00:00"},
    {"limit": 201},
    {"cursor": "x"},
    {"actor": "\0"},
    {"outcome": ""},
]


async def test_bad_filter_is_refused(ask: Ask, people: People) -> None:
    admin = people.new("admin", "platform_admin")
    for params in BAD:
        answer = await ask(admin, "GET", AUDIT, params=params)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), params
    for since in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        answer = await ask(admin, "GET", AUDIT, params={"since": since})
        assert answer.status_code in (200, 422), since


async def test_audit_requires_permission_for_all(ask: Ask, people: People) -> None:
    auditor = people.role("auditor", "audit:read")
    assert (await ask(people.new("anna", auditor), "GET", AUDIT)).status_code == 200
    narrow = people.new("nora", auditor, lanes=["system"])
    assert (await ask(narrow, "GET", AUDIT)).status_code == 403
    assert (await ask(people.new("olga", "operator"), "GET", AUDIT)).status_code == 403
