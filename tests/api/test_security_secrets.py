"""Hidden secrets: rows 7, 16, 17 and 20 of the security checklist."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx2
import psycopg
import pytest
from fastapi import FastAPI

from laneway.api.app import make_app
from laneway.config.settings import Settings
from laneway.control.credential_cache import FRESH_S
from laneway.engine.process.logs import JsonLines, TextLines
from laneway.store import jobs as job_store
from laneway.store.database import Database, connection_options
from tests.api.conftest import Ask, People
from tests.support.job_factory import JobFactory

SECRET = "s3cr3t-that-must-not-show"
INNARDS = re.compile(
    r"\bselect\b|\binsert into\b|\bfrom laneway\b|laneway\.jobs|psycopg|traceback|\.py\b|line \d+"
    r"|postgres(ql)?://|password|/src/|File \"",
    re.IGNORECASE,
)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """Everything logged during the test, at every level, in both formats."""
    caplog.set_level(logging.DEBUG)
    logged: list[str] = []
    yield logged
    for record in caplog.get_records("call"):
        # The HTTP client of the tests logs its requests.
        if not record.name.startswith("httpx2"):
            logged += [TextLines().format(record), JsonLines().format(record)]
    assert logged
    assert SECRET not in "\n".join(logged)


# -- row 7: tokens ----------------------------------------------------------------------------


async def test_database_dump_contains_no_usable_credentials(
    ask: Ask, app: FastAPI, people: People, factory: JobFactory
) -> None:
    """test_access.py checks that no table has a secret; here every stored value is tried."""
    people.new("ann", "platform_admin")
    kept = factory.conn.execute(
        "select encode(digest, 'hex'), encode(digest, 'base64'), hint, id::text from laneway.tokens"
    ).fetchone()
    assert kept is not None
    for value in kept:
        for token in (value, f"lw_{value}", f"lw_{value[:43]}"):
            headers = {"Authorization": f"Bearer {token.strip()}"}
            assert (await ask(None, "GET", "/me", headers=headers)).status_code == 401
    assert FRESH_S <= 5, "a revoked token may be used for at most that long"


# -- row 16: the audit ------------------------------------------------------------------------


async def test_audit_entry_has_actor_action_address_and_request(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    admin = people.new("admin", "platform_admin")
    path = "/admin/workers/lanes/system"
    changed = await ask(
        admin, "PATCH", path, json={"max_slots": 7}, headers={"X-Request-Id": "mine-1"}
    )
    assert changed.status_code == 200
    row = factory.conn.execute(
        "select actor, principal_id, door, kind, name, outcome, before ->> 'max_slots',"
        " after ->> 'max_slots', request_id, address from laneway.audit"
    ).fetchall()
    who = ("admin", admin.id, "http")
    assert row == [(*who, "lane", "system", "done", "1", "7", "mine-1", "127.0.0.1")]


# -- row 17: secrets in what is sent ----------------------------------------------------------


async def test_secret_names_appear_in_no_log_audit_or_problem(
    ask: Ask, people: People, factory: JobFactory, lines: list[str]
) -> None:
    admin = people.new("admin", "platform_admin")
    factory.publish(
        "login",
        json.dumps(
            {
                "type": "object",
                "properties": {"password": {"type": "integer"}, "api_key": {"type": "string"}},
                "required": ["password", "api_key"],
                "additionalProperties": False,
            }
        ),
    )
    payload = {"password": SECRET, "nested": {"api_key": SECRET, "token": [SECRET]}}
    schedule = {"name": "s", "job_type": "greet", "cron": "0 3 * * *", "payload": payload}
    sent = [
        ("POST", "/jobs", {"job_type": "greet", "payload": payload}),
        ("POST", "/jobs", {"job_type": "login", "payload": payload}),
        ("POST", "/jobs/batch", {"jobs": [{"job_type": "login", "payload": payload}]}),
        ("POST", "/jobs", {"job_type": "greet", "password": SECRET}),
        ("POST", "/jobs", {"job_type": "greet", "priority": SECRET}),
        ("POST", "/admin/schedules", schedule),
        ("PATCH", "/admin/schedules/s", {"payload": {"secret": SECRET}}),
        ("PATCH", "/admin/schedules/s", {"payload": {"passwd": SECRET}, "cron": SECRET[:3]}),
        ("POST", "/admin/schedules/s/run", None),
        ("DELETE", "/admin/schedules/s", None),
    ]
    statuses = []
    for method, path, body in sent:
        answer = await ask(admin, method, path, **({} if body is None else {"json": body}))
        statuses.append(answer.status_code)
        if answer.status_code >= 400:
            assert SECRET not in answer.text, (path, answer.text)
    assert statuses == [202, 422, 422, 422, 422, 201, 200, 422, 200, 204]
    listed = await ask(admin, "GET", "/admin/audit", params={"limit": 200})
    assert SECRET not in listed.text
    assert "[redacted]" in listed.text
    kept = factory.conn.execute(
        "select count(*) from laneway.audit a where a::text like '%%' || %s || '%%'", [SECRET]
    ).fetchone()
    assert kept == (0,)


async def test_tokens_links_and_cookies_are_never_logged(
    ask: Ask, people: People, lines: list[str]
) -> None:
    for headers in (
        {"Authorization": f"Bearer lw_{SECRET}"},
        {"Cookie": f"laneway_session={SECRET}"},
        {"Authorization": f"Bearer {people.new('a').token}", "X-CSRF-Token": SECRET},
    ):
        answer = await ask(None, "GET", "/me", headers=headers)
        assert SECRET not in answer.text
    assert (await ask(None, "POST", "/login", data={"link": SECRET})).status_code == 401
    await ask(None, "GET", "/login", params={"link": SECRET})
    assert (await ask(None, "GET", f"/jobs/{uuid4()}?token={SECRET}")).status_code == 401


# -- row 20: errors ---------------------------------------------------------------------------


@asynccontextmanager
async def served_on(dsn: str, **settings: Any) -> AsyncIterator[httpx2.AsyncClient]:
    database = Database(dsn, Settings.load(database_url=dsn, **settings), role="tests api")
    app = make_app(database.settings, database)
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client
    await app.state.close()
    await database.close()


def tells_nothing(answer: httpx2.Response, status: int) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert not INNARDS.search(answer.text), answer.text
    assert SECRET not in answer.text


async def test_database_that_is_away_or_has_no_schema_is_503_and_no_more(
    empty_dsn: str, lines: list[str]
) -> None:
    token = {"Authorization": "Bearer lw_" + "x" * 43}
    away = f"postgresql://someone:{SECRET}@127.0.0.1:1/none"
    for dsn in (away, empty_dsn):
        async with served_on(dsn) as client:
            for path in ("/jobs", "/readyz", "/me"):
                answer = await client.get(path, headers=token)
                tells_nothing(answer, 503)
                for word in ("someone", "127.0.0.1", "relation", "does not exist"):
                    assert word not in answer.text


async def test_database_errors_reveal_nothing(
    dsn: str, people: People, conn: psycopg.Connection[Any]
) -> None:
    ann = people.new("ann", "platform_admin")
    async with served_on(dsn, statement_timeout=3.0) as client:
        with conn.transaction():
            conn.execute("lock table laneway.jobs in access exclusive mode")
            tells_nothing(await client.get("/jobs", headers=ann.headers), 503)
        # A constraint that only the database knows: an unexpected, internal error.
        conn.execute("alter table laneway.limits add check (name <> 'odd')")
        answer = await client.put("/admin/limits/odd", json={}, headers=ann.headers)
        tells_nothing(answer, 500)


async def test_internal_error_reveals_only_request_id(
    ask: Ask, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"select {SECRET} from laneway.jobs")

    monkeypatch.setattr(job_store, "matching", broken)
    answer = await ask(people.new("ann", "viewer"), "GET", "/jobs")
    tells_nothing(answer, 500)


async def test_each_kind_of_refusal_is_plain(ask: Ask, people: People, factory: JobFactory) -> None:
    admin = people.new("admin", "platform_admin")
    done = factory.completed()
    cases: list[tuple[Any, str, str, dict[str, Any], int]] = [
        (None, "GET", "/jobs", {}, 401),
        (people.new("ann"), "GET", "/jobs", {}, 403),
        (admin, "GET", f"/jobs/{uuid4()}", {}, 404),
        (admin, "GET", "/jobs/not-an-id", {}, 422),
        (admin, "PUT", "/jobs", {}, 405),
        (admin, "POST", f"/jobs/{done}/retry", {}, 409),
        (admin, "POST", "/jobs", {"json": {"job_type": "a\x00"}}, 422),
        (admin, "POST", "/jobs", {"content": b"{", "headers": {"Content-Type": "a/json"}}, 422),
        (admin, "GET", "/jobs", {"params": {"since": "yesterday"}}, 422),
    ]
    for who, method, path, more, status in cases:
        tells_nothing(await ask(who, method, path, **more), status)


def test_password_is_in_no_name_of_a_connection() -> None:
    """Other roles see application names; parts of the DSN go to the server only."""
    dsn = f"postgresql://someone:{SECRET}@127.0.0.1:1/none?options=-cx%3Dy"
    settings = Settings.load(database_url=dsn)
    assert SECRET not in str(connection_options(dsn, settings, "server"))
    assert SECRET not in f"{settings!r} {settings}"
