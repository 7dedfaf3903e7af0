"""Authentication: rows 1, 9, 19 and 21 of the security checklist (docs/reference/security.md)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import psycopg
import pytest
from fastapi import FastAPI
from psycopg.sql import SQL, Identifier

from laneway.api.app import make_app
from laneway.api.http.bodies import ANONYMOUS_BODY_LIMIT
from laneway.config.settings import Settings
from laneway.control import credential_cache, sessions
from laneway.control.access import create_principal
from laneway.control.credential_cache import FRESH_S, CredentialCache
from laneway.control.throttle import Buckets, Throttle
from laneway.domain.token import new_secret
from laneway.errors import RateLimited, Unauthenticated
from laneway.store.database import Database
from tests.api.conftest import Ask, People
from tests.api.matrix import ENTRIES
from tests.api.test_app import OPEN, served

ID = "00000000-0000-7000-8000-000000000000"
HUGE = 10**9


def concrete(path: str) -> str:
    return re.sub(r"\{name\}", "x", re.sub(r"\{\w*id\}", ID, path))


async def unread(
    app: FastAPI, method: str, path: str, headers: dict[str, str], scheme: str = "http"
) -> tuple[int, dict[str, str]]:
    """Send a request whose body must not be read; return the response."""
    sent: list[Any] = []

    async def receive() -> Any:
        pytest.fail(f"{method} {path}: the body was read")

    async def send(message: Any) -> None:
        sent.append(message)

    given = {"content-type": "application/json", "content-length": str(HUGE), **headers}
    await app(
        {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": scheme,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(k.lower().encode(), v.encode()) for k, v in given.items()],
            "client": ("127.0.0.1", 1),
            "server": ("test", 80),
        },
        receive,
        send,
    )
    headers_sent = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    return int(sent[0]["status"]), headers_sent


# -- row 1: authentication, before anything else ----------------------------------------------


async def test_anonymous_body_is_not_read(app: FastAPI) -> None:
    wrong = {"Authorization": "Bearer lw_" + "x" * 43}
    for method, path in set(served(app)) - OPEN:
        for headers in ({}, wrong, {"Cookie": "laneway_session=x"}):
            app.state.throttle = Throttle(app.state.settings)
            status, _ = await unread(app, method, concrete(path), headers)
            assert status == 401, (method, path)


async def test_body_of_forbidden_request_is_not_read(app: FastAPI, people: People) -> None:
    nobody = people.new("nobody")
    for (method, path), entry in ENTRIES.items():
        if entry.permission is None:
            continue
        status, _ = await unread(app, method, concrete(path), nobody.headers)
        assert status == 403, (method, path)


async def test_invalid_json_does_not_bypass_authentication(ask: Ask, people: People) -> None:
    bad = {"content": b"{", "headers": {"Content-Type": "application/json"}}
    assert (await ask(None, "POST", "/jobs", **bad)).status_code == 401
    assert (await ask(people.new("ann"), "POST", "/jobs", **bad)).status_code == 403
    able = people.new("bo", "submitter")
    assert (await ask(able, "POST", "/jobs", **bad)).status_code == 422


async def test_anonymous_body_is_bounded(ask: Ask) -> None:
    answer = await ask(None, "POST", "/login", content=b"x" * (ANONYMOUS_BODY_LIMIT + 1))
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert str(ANONYMOUS_BODY_LIMIT) in answer.json()["detail"]


async def test_slow_anonymous_body_is_not_waited_for(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.api.routes.login.PATIENCE_S", 0.01)
    sent: list[Any] = []

    async def receive() -> Any:
        return await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": "/login", "raw_path": b"/login", "root_path": "", "query_string": b"",
        "headers": [(b"content-length", b"10")], "client": ("127.0.0.1", 1),
        "server": ("test", 80),
    }  # fmt: skip
    async with asyncio.timeout(60):
        await app(scope, receive, send)
    assert sent[0]["status"] == 422


# -- row 9: browsers --------------------------------------------------------------------------


@pytest.fixture
async def browser(app: FastAPI, database: Database) -> AsyncIterator[httpx2.AsyncClient]:
    """A person who has just logged in."""
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
        link = await sessions.bootstrap(database, "tests")
        opened = await client.post("/login", data={"link": link})
        assert opened.status_code == 303
        yield client


async def test_session_changes_nothing_without_its_token_and_from_elsewhere(
    browser: httpx2.AsyncClient, app: FastAPI, conn: psycopg.Connection[Any]
) -> None:
    csrf = (await browser.get("/me")).json()["csrf"]
    cookie = f"laneway_session={browser.cookies['laneway_session']}"

    def audit_entries() -> list[Any]:
        query = "select actor, outcome, door, action from laneway.audit order by id"
        return conn.execute(query).fetchall()

    before = audit_entries()
    refused = []
    wrong: list[dict[str, str]] = [
        {},
        {"X-CSRF-Token": "x" * len(csrf)},
        {"X-CSRF-Token": csrf, "Origin": "http://evil.example"},
        {"X-CSRF-Token": csrf, "Origin": "https://test"},
        {"X-CSRF-Token": csrf, "Origin": "http://test:81"},
        {"X-CSRF-Token": csrf, "Origin": "null"},
    ]
    for method, path in served(app):
        if (method, path) in OPEN or method == "GET":
            continue
        for headers in wrong:
            given = {"Cookie": cookie, "Host": "test", **headers}
            status, _ = await unread(app, method, concrete(path), given)
            assert status == 403, (method, path, headers)
            refused.append(("admin", "refused", "ui", f"{method} {path}"))
    assert audit_entries() == before + refused


async def test_no_get_changes_anything(
    browser: httpx2.AsyncClient, app: FastAPI, conn: psycopg.Connection[Any]
) -> None:
    """A browser with a session follows a link of another site."""

    def tables() -> dict[str, Any]:
        names = conn.execute(
            "select relname from pg_class where relnamespace = 'laneway'::regnamespace"
            # The last use of a session is stored.
            " and relkind = 'r' and relname <> 'sessions'"
        ).fetchall()
        content = "select string_agg(t::text, ',' order by t::text) from laneway.{} t"
        return {
            name: conn.execute(SQL(content).format(Identifier(name))).fetchone()
            for (name,) in names
        }

    before = tables()
    for method, path in set(served(app)):
        if method == "GET" and not path.endswith(("/stream", "/events")):
            assert (await browser.get(concrete(path))).status_code < 500, path
    assert tables() == before


async def test_pages_of_other_sites_can_read_nothing(
    browser: httpx2.AsyncClient, app: FastAPI
) -> None:
    foreign = {"Origin": "http://evil.example"}
    for method, path in set(served(app)):
        if method != "GET":
            continue
        answer = await browser.get(concrete(path), headers=foreign)
        assert not [name for name in answer.headers if name.startswith("access-control")], path
        asked = {**foreign, "Access-Control-Request-Method": "POST"}
        preflight = await browser.request("OPTIONS", concrete(path), headers=asked)
        assert preflight.status_code in (404, 405)
        assert not [name for name in preflight.headers if name.startswith("access-control")]


async def test_cross_site_page_cannot_log_in(app: FastAPI, database: Database, ask: Ask) -> None:
    link = await sessions.bootstrap(database, "tests")
    for origin in ("http://evil.example", "null", "https://test"):
        refused = await ask(None, "POST", "/login", data={"link": link}, headers={"Origin": origin})
        assert refused.status_code == 403
        assert "set-cookie" not in refused.headers
    followed = await ask(None, "GET", "/login", params={"link": link})
    assert "set-cookie" not in followed.headers
    assert (await ask(None, "POST", "/login", data={"link": link})).status_code == 303


# -- row 19: what browsers heed ---------------------------------------------------------------


async def test_under_tls_cookies_are_secure_and_stay_so(app: FastAPI, database: Database) -> None:
    link = await sessions.bootstrap(database, "tests")
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="https://test") as client:
        opened = await client.post("/login", data={"link": link})
        cookie = opened.headers["set-cookie"].lower()
        assert cookie.startswith("__host-laneway_session=")
        for word in ("httponly", "secure", "samesite=lax", "path=/;"):
            assert word in cookie
        tossed = {"Cookie": f"laneway_session={opened.cookies['__Host-laneway_session']}"}
        async with httpx2.AsyncClient(transport=transport, base_url="https://test") as other:
            assert (await other.get("/me", headers=tossed)).status_code == 401
        for path in ("/docs", "/me", "/healthz", "/nothing"):
            headers = (await client.get(path)).headers
            assert headers["strict-transport-security"].startswith("max-age=")
            assert headers["content-security-policy"].startswith("default-src 'self'")
            assert "unsafe" not in headers["content-security-policy"]
            assert "base-uri 'none'" in headers["content-security-policy"]
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"


# -- row 21: logging in and out ---------------------------------------------------------------


async def test_link_works_once_and_each_login_has_a_new_session(
    browser: httpx2.AsyncClient, database: Database
) -> None:
    old = browser.cookies["laneway_session"]
    first = (await browser.get("/me")).json()["csrf"]
    link = await sessions.create_login_link(database, "admin", by="tests")
    assert (await browser.post("/login", data={"link": link})).status_code == 303
    assert (await browser.post("/login", data={"link": link})).status_code == 401
    assert browser.cookies["laneway_session"] != old
    assert (await browser.get("/me")).json()["csrf"] != first
    browser.cookies.clear()
    stale = {"Cookie": f"laneway_session={old}"}
    assert (await browser.get("/me", headers=stale)).status_code == 401


async def test_logout_ends_the_session_at_every_replica(
    browser: httpx2.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert FRESH_S < 5
    monkeypatch.setattr(credential_cache, "FRESH_S", 0.0)
    other = make_app(database.settings, database)
    cookie = {"Cookie": f"laneway_session={browser.cookies['laneway_session']}"}
    transport = httpx2.ASGITransport(other)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as elsewhere:
        me = await elsewhere.get("/me", headers=cookie)
        assert me.status_code == 200
        out = await browser.post("/logout", headers={"X-CSRF-Token": me.json()["csrf"]})
        assert out.status_code == 204
        assert (await elsewhere.get("/me", headers=cookie)).status_code == 401
    assert (await browser.get("/me", headers=cookie)).status_code == 401
    await other.state.close()


@pytest.mark.usefixtures("still_limits")
async def test_guessing_of_secrets_is_slowed_and_others_are_not(
    ask: Ask, app: FastAPI, people: People
) -> None:
    ann = people.new("ann", "viewer")
    assert (await ask(ann, "GET", "/me")).status_code == 200
    tries = app.state.settings.failed_logins_per_minute
    wrong = [
        ("POST", "/login", {"data": {"link": "lwl_guess"}}),
        ("GET", "/me", {"headers": {"Authorization": "Bearer lw_guess"}}),
        ("GET", "/me", {"headers": {"Cookie": "laneway_session=guess"}}),
    ]
    for i in range(tries):
        method, path, more = wrong[i % len(wrong)]
        assert (await ask(None, method, path, **more)).status_code == 401
    for method, path, more in wrong:
        answer = await ask(None, method, path, **more)
        assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
    # Without a secret nothing is guessed.
    assert (await ask(None, "GET", "/me")).status_code == 401
    assert (await ask(ann, "GET", "/me")).status_code == 200


@pytest.mark.usefixtures("still_limits")
async def test_valid_secret_is_never_refused_for_wrong_ones(
    ask: Ask, app: FastAPI, database: Database, people: People
) -> None:
    for i in range(2000):
        app.state.throttle.count_failure(f"192.0.{i // 250}.{i % 250}")
        app.state.throttle.count_failure("127.0.0.1")
    wrong = {"headers": {"Authorization": f"Bearer {new_secret().text}"}}
    assert (await ask(None, "GET", "/me", **wrong)).status_code == 429
    # None of them was seen before, as after a restart.
    for number in range(14):
        assert (await ask(people.new(f"ann{number}"), "GET", "/me")).status_code == 200
    await create_principal(database, "pat", "person", by="tests")
    link = await sessions.create_login_link(database, "pat", by="tests")
    entered = await ask(None, "POST", "/login", data={"link": link})
    assert entered.status_code == 303
    cookie = {"headers": {"Cookie": entered.headers["set-cookie"].partition(";")[0]}}
    app.state.credentials = CredentialCache(database)
    assert (await ask(None, "GET", "/me", **cookie)).status_code == 200


@pytest.mark.usefixtures("still_limits")
async def test_addresses_fail_together_and_each_by_itself() -> None:
    async def wrong() -> None:
        raise Unauthenticated("wrong")

    async def is_open(throttle: Throttle, address: str | None) -> bool:
        try:
            await throttle.check(address, wrong, is_known=False)
        except RateLimited:
            return False
        except Unauthenticated:
            return True
        raise AssertionError("a wrong secret was accepted")

    throttle = Throttle(Settings.load(failed_logins_per_minute=2))
    for _ in range(2):
        assert await is_open(throttle, "2001:db8::1")
    assert not await is_open(throttle, "2001:db8::ffff")
    assert await is_open(throttle, "2001:db8:0:1::1")
    assert await is_open(throttle, "192.0.2.1")
    assert await is_open(throttle, None)
    for i in range(40):
        throttle.count_failure(f"192.0.2.{i}")
    assert not await is_open(throttle, "198.51.100.1")
    off = Throttle(Settings.load(failed_logins_per_minute=0))
    for _ in range(1000):
        off.count_failure("192.0.2.1")
    assert await is_open(off, "192.0.2.1")


@pytest.mark.usefixtures("still_limits")
async def test_after_many_wrong_secrets_few_are_looked_up_at_once() -> None:
    throttle = Throttle(Settings.load(failed_logins_per_minute=1))
    throttle.count_failure("192.0.2.1")
    at_once = most = 0

    async def look() -> int:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return 1

    looks = [throttle.check("192.0.2.1", look, is_known=False) for _ in range(50)]
    assert sum(await asyncio.gather(*looks)) == 50
    assert most <= 2


# -- the buckets both use ---------------------------------------------------------------------


def test_bucket_gives_its_burst_and_then_its_rate() -> None:
    buckets = Buckets(per_second=10, burst=5)
    assert [buckets.take("a", 0.0) for _ in range(5)] == [0] * 5
    assert buckets.take("a", 0.0) == pytest.approx(0.1)
    assert buckets.wait("a", 0.0) == pytest.approx(0.1)
    assert buckets.take("b", 0.0) == 0
    assert buckets.wait("a", 0.11) == 0
    assert buckets.take("a", 0.11) == 0
    assert buckets.take("a", 0.11) > 0
    assert [buckets.take("a", 100.0) for _ in range(5)] == [0] * 5
    assert buckets.take("a", 100.0) > 0


def test_bucket_of_one_allows_one_at_any_clock() -> None:
    buckets = Buckets(per_second=0.0001, burst=1)
    times = [n * 0.1 + 12_345.6789 for n in range(1000)]
    assert [buckets.take(now, now) for now in times] == [0.0] * 1000
    assert all(buckets.take(now, now) > 9_000 for now in times)


def test_buckets_are_bounded_and_the_emptiest_are_kept() -> None:
    buckets = Buckets(per_second=1, burst=2, most=10)
    for _ in range(2):
        buckets.take("greedy", 0.0)
    for i in range(1000):
        buckets.take(i, 0.0)
        assert len(buckets) <= 10
    assert buckets.wait("greedy", 0.0) > 0
