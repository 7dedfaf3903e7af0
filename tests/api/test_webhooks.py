"""Webhooks over HTTP: made, changed and deleted; no response but one has a secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from laneway.domain.webhook import check_secret, new_secret
from tests.api.conftest import Ask, People

WEBHOOKS = "/admin/webhooks"
ERP = f"{WEBHOOKS}/erp"
NEW = {"name": "erp", "url": "https://erp.example.com/hook"}
Acts = Callable[[], list[tuple[Any, ...]]]


async def test_webhook_lives_from_its_creation_to_its_deletion(
    ask: Ask, people: People, audit_entries: Acts, conn: psycopg.Connection[Any]
) -> None:
    olga = people.new("olga", "operator")
    made = await ask(olga, "POST", WEBHOOKS, json={**NEW, "events": ["job.failed"]})
    assert (made.status_code, made.headers["location"]) == (201, ERP)
    secret = check_secret(made.json().pop("secret"))
    shown = {name: value for name, value in made.json().items() if name != "secret"}
    assert (shown["events"], shown["enabled"], shown["job_types"]) == (["job.failed"], True, [])
    assert (shown["timeout_s"], shown["max_retries"], shown["created_by"]) == (15, 10, "olga")
    assert (await ask(olga, "GET", ERP)).json() == shown
    assert (await ask(olga, "GET", WEBHOOKS)).json()["items"] == [shown]

    changed = await ask(olga, "PATCH", ERP, json={"enabled": False, "tags": ["red"]})
    assert (changed.json()["enabled"], changed.json()["tags"]) == (False, ["red"])
    rotated = (await ask(olga, "POST", f"{ERP}/rotate")).json()
    assert check_secret(rotated["secret"]) != secret
    assert rotated["previous_secret_until"] is not None

    tested = await ask(olga, "POST", f"{ERP}/test")
    assert tested.status_code == 202
    job = (await ask(olga, "GET", f"/jobs/{tested.json()['job_id']}")).json()
    assert (job["job_type"], job["tags"][0]) == ("laneway.webhook", "webhook:erp")

    assert (await ask(olga, "DELETE", ERP)).status_code == 204
    for method, path in (("GET", ERP), ("PATCH", ERP), ("DELETE", ERP), ("POST", f"{ERP}/test")):
        body = {"json": {"enabled": True}} if method == "PATCH" else {}
        assert (await ask(olga, method, path, **body)).status_code == 404
    assert [(act[1], act[2]) for act in audit_entries() if act[4] == "done"] == [
        ("webhook.created", "webhook"), ("webhook.changed", "webhook"),
        ("webhook.secret_rotated", "webhook"), ("webhook.tested", "webhook"),
        ("webhook.deleted", "webhook"),
    ]  # fmt: skip
    kept = str(conn.execute("select a::text from laneway.audit a").fetchall())
    assert "enabled" in kept
    assert secret not in kept
    assert rotated["secret"] not in kept


async def test_secret_that_is_given_is_never_returned_or_logged(
    ask: Ask, people: People, conn: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    olga = people.new("olga", "operator")
    caplog.set_level("INFO", "laneway.control")
    secret, other = new_secret(), new_secret()
    made = await ask(olga, "POST", WEBHOOKS, json={**NEW, "secret": secret})
    assert (made.status_code, made.json()["secret"]) == (201, None)
    again = await ask(olga, "POST", WEBHOOKS, json={**NEW, "secret": other})
    assert again.status_code == 409
    changed = await ask(olga, "PATCH", ERP, json={"secret": other})
    wrong = await ask(olga, "PATCH", ERP, json={"secret": f"{secret}%"})
    assert wrong.status_code == 422
    seen = "".join(each.text for each in (made, again, changed, wrong)) + caplog.text
    seen += str(conn.execute("select a::text from laneway.audit a").fetchall())
    assert "webhook erp" in caplog.text
    assert secret not in seen
    assert other not in seen
    stored = conn.execute("select secret, previous_secret from laneway.webhooks").fetchall()
    assert stored == [(other, secret)]


async def test_wrong_settings_name_field_and_rule(ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    assert (await ask(olga, "POST", WEBHOOKS, json=NEW)).status_code == 201
    for change, field in (
        ({"url": "ftp://example.com"}, "url"),
        ({"events": ["job.fialed"]}, "events"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"max_retries": 51}, "max_retries"),
        ({"colour": "red"}, "colour"),
    ):
        refused = await ask(olga, "PATCH", ERP, json=change)
        assert (refused.status_code, field in refused.text) == (422, True), refused.text
    assert (await ask(olga, "PATCH", ERP, json={})).status_code == 422
    assert (await ask(olga, "POST", WEBHOOKS, json={"name": "x"})).status_code == 422


async def test_viewer_sees_no_webhooks(ask: Ask, people: People) -> None:
    vera = people.new("vera", "viewer")
    assert (await ask(vera, "GET", WEBHOOKS)).status_code == 403


async def test_audit_shows_no_path_or_query_of_the_url(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    olga = people.new("olga", "operator")
    url = "https://hooks.example.com:8443/services/T0KEN/B1?key=S3CRET"
    assert (await ask(olga, "POST", WEBHOOKS, json={**NEW, "url": url})).status_code == 201
    changed = await ask(olga, "PATCH", ERP, json={"url": f"{url}2", "timeout_s": 9})
    assert changed.json()["url"] == f"{url}2"
    assert (await ask(olga, "POST", f"{ERP}/rotate")).status_code == 200
    assert (await ask(olga, "DELETE", ERP)).status_code == 204
    kept = str(conn.execute("select a::text from laneway.audit a").fetchall())
    assert "T0KEN" not in kept
    assert "S3CRET" not in kept
    rows = conn.execute(
        "select before ->> 'url', after ->> 'url', after -> 'changed' from laneway.audit"
        " order by id"
    ).fetchall()
    short = "https://hooks.example.com:8443/…"
    assert rows == [
        (None, short, None), (short, short, ["timeout_s", "url"]), (short, short, ["secret"]),
        (short, None, None),
    ]  # fmt: skip
