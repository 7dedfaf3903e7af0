"""Principals, roles, grants and tokens over HTTP: callers cannot grant more than they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from tests.api.conftest import Ask, People, Principal

Acts = Callable[[], list[tuple[Any, ...]]]


async def test_principal_gets_a_role_and_a_token_and_loses_them(
    ask: Ask, people: People, audit_entries: Acts
) -> None:
    admin = people.new("admin", "platform_admin")
    made = await ask(admin, "POST", "/admin/principals", json={"name": "ci", "kind": "service"})
    assert (made.status_code, made.json()["created_by"]) == (201, "admin")
    given = {"principal": "ci", "role": "viewer", "scope": "all"}
    grant = await ask(admin, "POST", "/admin/grants", json=given)
    assert grant.status_code == 201
    token = await ask(admin, "POST", "/admin/tokens", json={"principal": "ci", "name": "build"})
    assert token.status_code == 201
    ci = Principal(made.json()["id"], "ci", token.json()["secret"])
    assert (await ask(ci, "GET", "/admin/workers/lanes")).status_code == 200

    listed = await ask(admin, "GET", "/admin/tokens", params={"principal": "ci"})
    (shown,) = listed.json()["items"]
    assert "secret" not in shown
    assert ci.token not in listed.text
    assert shown["expires_at"] is not None
    (seen,) = (await ask(admin, "GET", "/admin/grants", params={"principal": "ci"})).json()["items"]
    assert seen["role"] == "viewer"

    revoked = await ask(admin, "POST", f"/admin/tokens/{shown['id']}/revoke")
    assert revoked.json()["revoked_by"] == "admin"
    assert ci.token not in revoked.text
    assert (await ask(admin, "DELETE", f"/admin/grants/{seen['id']}")).status_code == 204
    assert (await ask(admin, "DELETE", f"/admin/grants/{seen['id']}")).status_code == 404
    assert (await ask(admin, "POST", f"/admin/tokens/{uuid4()}/revoke")).status_code == 404
    assert [act[4] for act in audit_entries()] == ["done"] * 5


async def test_secret_is_in_one_answer_and_nowhere_else(
    ask: Ask, people: People, factory: Any
) -> None:
    admin = people.new("admin", "platform_admin")
    headers = {"Idempotency-Key": "once"}
    body = {"principal": "admin", "name": "x"}
    made = await ask(admin, "POST", "/admin/tokens", json=body, headers=headers)
    secret = made.json()["secret"]
    for path in ("/admin/tokens", "/admin/audit", "/admin/principals", "/me"):
        assert secret not in (await ask(admin, "GET", path)).text
    for (table,) in factory.conn.execute(
        "select c.relname from pg_class c where c.relnamespace = 'laneway'::regnamespace"
        " and c.relkind = 'r'"
    ).fetchall():
        found = factory.conn.execute(
            f"select count(*) from laneway.{table} t where t::text like '%%' || %s || '%%'",
            [secret[3:]],
        )
        assert found.fetchone() == (0,), table


async def test_custom_role_is_created_changed_and_deleted(ask: Ask, people: People) -> None:
    admin = people.new("admin", "platform_admin")
    new = {"name": "reader", "permissions": ["metrics:read", "jobs:read"]}
    made = await ask(admin, "POST", "/admin/roles", json=new)
    assert (made.status_code, made.json()["permissions"]) == (201, ["jobs:read", "metrics:read"])
    changed = await ask(admin, "PUT", "/admin/roles/reader", json={"permissions": ["jobs:read"]})
    assert changed.json()["permissions"] == ["jobs:read"]
    names = [role["name"] for role in (await ask(admin, "GET", "/admin/roles")).json()["items"]]
    assert "reader" in names
    assert "operator" in names
    assert (await ask(admin, "DELETE", "/admin/roles/reader")).status_code == 204
    assert (await ask(admin, "DELETE", "/admin/roles/operator")).status_code == 409


async def test_disabled_principal_is_named_in_error(ask: Ask, people: People) -> None:
    admin = people.new("admin", "platform_admin")
    people.new("team/ci", "viewer")
    path = "/admin/principals"
    off, on = ({"name": "team/ci", "disabled": disabled} for disabled in (True, False))
    assert (await ask(admin, "PATCH", path, json=off)).json()["disabled_at"] is not None
    assert (await ask(admin, "PATCH", path, json=off)).status_code == 409
    assert (await ask(admin, "PATCH", path, json=on)).json()["disabled_at"] is None
    nobody = await ask(admin, "PATCH", path, json={**off, "name": "nobody"})
    assert nobody.status_code == 404


@pytest.fixture
def keeper(people: People) -> Principal:
    """A principal that manages access and may view lanes, and nothing more."""
    role = people.role("keeper", "access:manage", "workers:view")
    return people.new("keeper", role)


TOO_MUCH: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "tokens", {"principal": "admin", "name": "mine"}),
    ("POST", "grants", {"principal": "keeper", "role": "platform_admin", "scope": "own"}),
    ("POST", "grants", {"principal": "keeper", "role": "viewer", "scope": "all"}),
    ("POST", "roles", {"name": "mighty", "permissions": ["jobs:debug"]}),
    ("PUT", "roles/keeper", {"permissions": ["access:manage", "audit:read"]}),
    ("PATCH", "principals", {"name": "admin", "disabled": False}),
]


async def test_callers_cannot_grant_permissions_they_do_not_hold(
    ask: Ask, people: People, audit_entries: Acts, keeper: Principal
) -> None:
    people.new("admin", "platform_admin")
    for method, path, body in TOO_MUCH:
        answer = await ask(keeper, method, f"/admin/{path}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), path
    refused = [(act[0], act[2], act[4]) for act in audit_entries()]
    assert refused == [("keeper", "access", "refused")] * len(TOO_MUCH)


async def test_held_grants_can_be_given_narrowed_or_whole(
    ask: Ask, people: People, keeper: Principal
) -> None:
    people.new("admin", "platform_admin")
    own = {"principal": "keeper", "name": "second"}
    assert (await ask(keeper, "POST", "/admin/tokens", json=own)).status_code == 201
    narrowed = {"principal": "admin", "name": "n", "permissions": ["workers:view"]}
    assert (await ask(keeper, "POST", "/admin/tokens", json=narrowed)).status_code == 201
    role = {"name": "onlooker", "permissions": ["workers:view"]}
    assert (await ask(keeper, "POST", "/admin/roles", json=role)).status_code == 201
    grant = {"principal": "keeper", "role": "onlooker", "scope": "all", "lanes": ["system"]}
    assert (await ask(keeper, "POST", "/admin/grants", json=grant)).status_code == 201


async def test_repeated_request_is_checked_before_it_is_answered(
    ask: Ask, people: People, audit_entries: Acts, keeper: Principal
) -> None:
    """A stored response is for callers that could still make the request."""
    body = {"name": "onlooker", "permissions": ["workers:view"]}
    sent: dict[str, Any] = {"json": body, "headers": {"Idempotency-Key": "once"}}
    assert (await ask(keeper, "POST", "/admin/roles", **sent)).status_code == 201
    narrowed = people.token(keeper.id, permissions=["access:manage"])
    answer = await ask(replace(keeper, token=narrowed), "POST", "/admin/roles", **sent)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    again = await ask(keeper, "POST", "/admin/roles", **sent)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert [act[4] for act in audit_entries()] == ["done", "refused"]


async def test_narrow_token_makes_no_wide_one(ask: Ask, people: People) -> None:
    narrow = people.new("admin", "platform_admin", permissions=["access:manage"])
    body = {"principal": "admin", "name": "wide"}
    assert (await ask(narrow, "POST", "/admin/tokens", json=body)).status_code == 403
    alike = {**body, "permissions": ["access:manage"]}
    assert (await ask(narrow, "POST", "/admin/tokens", json=alike)).status_code == 201


async def test_claimer_of_some_types_cannot_issue_token_for_others(
    ask: Ask, people: People
) -> None:
    admin = people.new("admin", "platform_admin")
    bound = replace(admin, token=people.token(admin.id, job_types=["greet", "shout"]))
    body = {"principal": "admin", "name": "t"}
    for given, status in (
        ({}, 403),
        ({"job_types": ["greet", "other"]}, 403),
        ({"job_types": ["greet"]}, 201),
        ({"permissions": ["jobs:read"]}, 201),
    ):
        answer = await ask(bound, "POST", "/admin/tokens", json={**body, **given})
        assert answer.status_code == status, given
    grant = {"principal": "admin", "role": "remote_worker", "scope": "all", "lanes": ["system"]}
    assert (await ask(bound, "POST", "/admin/grants", json=grant)).status_code == 403
    role = {"name": "claimer", "permissions": ["workers:claim"]}
    assert (await ask(bound, "POST", "/admin/roles", json=role)).status_code == 403
    made = await ask(admin, "POST", "/admin/tokens", json={**body, "job_types": ["b", "a", "b"]})
    assert made.json()["job_types"] == ["a", "b"]
    listed = (await ask(admin, "GET", "/admin/tokens")).json()["items"]
    assert ["a", "b"] in [each["job_types"] for each in listed]


BAD: list[tuple[str, dict[str, Any]]] = [
    ("principals", {"name": "x", "kind": "robot"}),
    ("principals", {"name": " x", "kind": "person"}),
    ("principals", {"name": "x\0", "kind": "person"}),
    ("principals", {"name": "x", "kind": "person", "id": str(uuid4())}),
    ("roles", {"name": "x", "permissions": []}),
    ("roles", {"name": "x", "permissions": ["jobs:everything"]}),
    ("grants", {"principal": "x", "role": "viewer", "scope": "workspace"}),
    ("grants", {"principal": "x", "role": "viewer", "scope": "all", "lanes": []}),
    ("tokens", {"principal": "x", "name": "x", "expires_in": 0}),
    ("tokens", {"principal": "x", "name": "x", "digest": "x"}),
    ("tokens", {"principal": "x", "name": "x", "job_types": []}),
    ("tokens", {"principal": "x", "name": "x", "job_types": ["\x01a"]}),
]


async def test_bad_input_is_refused(ask: Ask, people: People) -> None:
    admin = people.new("admin", "platform_admin")
    for path, body in BAD:
        answer = await ask(admin, "POST", f"/admin/{path}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), body


async def test_lane_that_is_not_there_is_named_and_nothing_is_given(
    ask: Ask, people: People, audit_entries: Callable[[], list[Any]]
) -> None:
    admin = people.new("admin", "platform_admin")
    for path, body in (
        ("grants", {"principal": "admin", "role": "viewer", "scope": "all"}),
        ("tokens", {"principal": "admin", "name": "x"}),
    ):
        given = {**body, "lanes": ["default", "interactiv"]}
        answer = await ask(admin, "POST", f"/admin/{path}", json=given)
        (error,) = answer.json()["errors"]
        assert (answer.status_code, error["field"]) == (422, "lanes")
        assert "unknown lane interactiv" in error["rule"]
    assert audit_entries() == []


async def test_pages_of_tokens_follow_each_other(ask: Ask, people: People) -> None:
    admin = people.new("admin", "platform_admin")
    for _ in range(4):
        people.token(admin.id)
    first = (await ask(admin, "GET", "/admin/tokens", params={"limit": 3})).json()
    rest = {"limit": 3, "cursor": first["next_cursor"]}
    second = (await ask(admin, "GET", "/admin/tokens", params=rest)).json()
    ids = [token["id"] for token in (*first["items"], *second["items"])]
    assert len(set(ids)) == 5
    assert second["next_cursor"] is None
    bad = await ask(admin, "GET", "/admin/tokens", params={"cursor": "x"})
    assert bad.status_code == 422


async def test_response_says_that_the_token_expires_soon(ask: Ask, people: People) -> None:
    ann = people.new("ann", "viewer")
    name = "laneway-token-expires-in"
    for days, life_days, seconds in ((30, 90, None), (5.5, 90, "432000"), (5.5, 7, None)):
        # A fresh token: its access may be cached for a moment.
        fresh = replace(ann, token=people.token(ann.id))
        people.expire(fresh.token, days=days, life_days=life_days)
        for path in ("/me", "/jobs", "/jobs/unknown"):
            assert (await ask(fresh, "GET", path)).headers.get(name) == seconds
    assert (await ask(fresh, "GET", "/me")).json()["token_expires_at"] is not None
    endless = replace(ann, token=people.token(ann.id))
    shown = await ask(endless, "GET", "/me")
    assert (shown.json()["token_expires_at"], shown.headers.get(name)) == (None, None)
    assert name not in (await ask(None, "GET", "/healthz")).headers
