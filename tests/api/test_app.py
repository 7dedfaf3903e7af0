"""Laws of every route: callers are identified, refusals are problems, OpenAPI is correct."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import psycopg
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from laneway.api.app import make_app
from laneway.api.http.middleware import RequestIdFilter
from laneway.api.routes.description import describe
from laneway.config.settings import Settings
from laneway.control import sessions
from laneway.control.throttle import Throttle
from laneway.engine.process.logs import JsonLines, TextLines
from laneway.store import jobs as job_store
from laneway.store.database import Database
from tests.api.conftest import Ask, People
from tests.support.job_factory import JobFactory

OPEN = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/"),
    ("HEAD", "/"),
    ("GET", "/ui"),
    ("GET", "/ui/{path}"),
    ("HEAD", "/ui/{path}"),
    ("GET", "/login"),
    ("POST", "/login"),
}


def routes(app: FastAPI) -> set[tuple[str, str]]:
    """The routes of OpenAPI."""
    document = describe(app)
    return {(m.upper(), path) for path, ops in document["paths"].items() for m in ops}


def served(app: FastAPI) -> Iterator[tuple[str, str]]:
    """The routes of the application, including mounted and hidden ones."""
    pending = list(app.routes)
    while pending:
        route = pending.pop()
        inner = getattr(getattr(route, "original_router", None), "routes", None)
        if isinstance(route, APIRoute) or inner is None:
            for method in getattr(route, "methods", None) or {"?"}:
                yield method, getattr(route, "path_format", "?")
        else:
            pending += inner


async def test_description_lists_exactly_the_routes(app: FastAPI) -> None:
    assert routes(app) == set(served(app))


async def test_operation_ids_are_names_of_their_own(app: FastAPI) -> None:
    document = describe(app)
    ids = [one["operationId"] for ops in document["paths"].values() for one in ops.values()]
    assert len(ids) == len(set(ids))
    assert [name for name in ids if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name)] == []


async def test_anonymous_caller_reaches_only_health_and_login(ask: Ask, app: FastAPI) -> None:
    for method, path in routes(app) - OPEN:
        path = re.sub(r"\{\w*id\}", "00000000-0000-7000-8000-000000000000", path)
        for headers in ({}, {"Authorization": "Bearer lw_" + "x" * 43}, {"Authorization": "x"}):
            app.state.throttle = Throttle(app.state.settings)
            answer = await ask(None, method, path.replace("{name}", "x"), headers=headers)
            assert answer.status_code == 401, (method, path, answer.text)
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_every_route_documents_its_problems(app: FastAPI) -> None:
    for path, operations in describe(app)["paths"].items():
        for method, operation in operations.items():
            if (method.upper(), path) in OPEN:
                continue
            assert {"401", "403", "422", "429", "503"} <= operation["responses"].keys(), path
            assert operation["security"], path


async def test_query_parameter_that_a_route_does_not_know_is_refused(
    ask: Ask, app: FastAPI, people: People, conn: psycopg.Connection[Any]
) -> None:
    boss = people.new("boss", "platform_admin")
    for method, path in sorted(routes(app)):
        target = re.sub(r"\{\w*id\}", "00000000-0000-7000-8000-000000000000", path)
        target = f"{target.replace('{name}', 'x')}?unheard_of=1"
        body = {} if method in ("GET", "DELETE") else {"json": {"job_type": "greet"}}
        answer = await ask(boss, method, target, **body)
        if (method, path) in OPEN:
            # Browsers, load balancers and mail programs add some.
            assert answer.status_code != 422 or "unheard_of" not in answer.text, path
            continue
        assert answer.status_code == 422, (method, path, answer.text)
        assert [one["field"] for one in answer.json()["errors"]] == ["query.unheard_of"], path
    (submitted,) = conn.execute("select count(*) from laneway.jobs").fetchone() or (None,)
    assert submitted == 0


async def test_unknown_routes_and_methods_are_problems(ask: Ask) -> None:
    missing = await ask(None, "GET", "/nothing")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    wrong = await ask(None, "PUT", "/jobs")
    assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")
    assert wrong.headers["allow"] == "GET, POST"
    assert (await ask(None, "GET", "/jobs/")).status_code == 404


async def test_invalid_json_is_refused_with_reason(ask: Ask, people: People) -> None:
    ann = people.new("ann", "operator")
    for more, rule in (
        ({"headers": {"Content-Type": "text/plain"}}, "Content-Type: application/json"),
        ({"headers": {"Content-Type": "application/json"}}, "is not JSON"),
    ):
        answer = await ask(ann, "POST", "/jobs", content=b'{"job_type": t}', **more)
        assert answer.status_code == 422
        (error,) = answer.json()["errors"]
        assert error["field"] == "body"
        assert rule in error["rule"]


async def test_valid_request_id_is_kept(ask: Ask) -> None:
    kept = await ask(None, "GET", "/healthz", headers={"X-Request-Id": "abc-1"})
    assert kept.headers["x-request-id"] == "abc-1"
    # It stands in log lines.
    token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    secret = await ask(None, "GET", "/healthz", headers={"X-Request-Id": token})
    assert secret.headers["x-request-id"] == "ghp_***"
    for given in ("a b", "x" * 129, "a\tb"):
        answer = await ask(None, "GET", "/healthz", headers={"X-Request-Id": given})
        assert re.fullmatch(r"lw:[0-9a-f]{32}", answer.headers["x-request-id"])


async def test_every_answer_has_the_headers_browsers_heed(ask: Ask) -> None:
    for path in ("/healthz", "/me", "/nothing"):
        headers = (await ask(None, "GET", path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers
        assert "strict-transport-security" not in headers


async def test_internal_errors_reveal_nothing_and_are_logged_with_request_id(
    ask: Ask, people: People, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ann = people.new("ann", "viewer")

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(job_store, "matching", broken)
    caplog.handler.addFilter(RequestIdFilter())
    caplog.set_level(logging.INFO, "laneway.api")
    answer = await ask(ann, "GET", "/jobs")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
    own = answer.headers["x-request-id"]
    (record,) = [one for one in caplog.records if one.exc_info]
    assert record.__dict__["request_id"] == own
    for formatter in (TextLines(), JsonLines()):
        assert own in formatter.format(record)
    (line,) = [one for one in caplog.records if "ms" in one.getMessage()]
    assert line.getMessage().startswith("GET /jobs 500 in")


async def test_body_too_large_is_refused_unread(
    ask: Ask, people: People, dsn: str, database: Database
) -> None:
    ann = people.new("ann", "submitter")
    small = make_app(Settings.load(database_url=dsn, max_batch_bytes=1000), database)
    transport = httpx2.ASGITransport(small, raise_app_exceptions=False)

    async def parts() -> Any:
        for _ in range(20):
            yield b" " * 100

    headers = {**ann.headers, "Content-Type": "application/json"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
        for content in (b" " * 1001, parts()):
            answer = await client.post("/jobs/batch", content=content, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    await small.state.close()


async def test_ready_means_the_database_is_there_with_its_schema(
    ask: Ask, app: FastAPI, empty_dsn: str, conn: psycopg.Connection[Any]
) -> None:
    assert (await ask(None, "GET", "/readyz")).status_code == 200
    nowhere = "postgresql://someone:hidden@127.0.0.1:1/none"
    for dsn in (empty_dsn, nowhere):
        other = Database(dsn, Settings.load(database_url=dsn), role="tests api")
        bad = make_app(other.settings, other)
        transport = httpx2.ASGITransport(bad, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            answer = await client.get("/readyz")
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "1"
            for word in ("hidden", "someone", "127.0.0.1", "relation"):
                assert word not in answer.text
            assert (await client.get("/healthz")).status_code == 200
        await bad.state.close()
        await other.close()


async def test_page_for_people_has_no_script(ask: Ask, people: People) -> None:
    ann = people.new("ann")
    page = await ask(ann, "GET", "/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "/admin/workers/lanes" in page.text
    assert "<script" not in page.text
    assert (await ask(ann, "GET", "/openapi.json")).json()["openapi"].startswith("3.")


async def test_link_opens_one_session_and_changes_need_its_csrf_token(
    ask: Ask, database: Database, factory: JobFactory, audit_entries: Callable[[], list[Any]]
) -> None:
    secret = await sessions.bootstrap(database, "tests")
    page = await ask(None, "GET", "/login", params={"link": f'{secret}"><script>'})
    assert "<script" not in page.text
    form = {"link": secret}
    foreign = {"Origin": "http://evil"}
    assert (await ask(None, "POST", "/login", data=form, headers=foreign)).status_code == 403
    opened = await ask(None, "POST", "/login", data=form, headers={"Origin": "http://test"})
    assert opened.status_code == 303
    set_cookie = opened.headers["set-cookie"].lower()
    assert "httponly" in set_cookie
    assert "samesite=lax" in set_cookie
    cookie = {"Cookie": opened.headers["set-cookie"].partition(";")[0]}
    assert (await ask(None, "POST", "/login", data=form)).status_code == 401
    me = (await ask(None, "GET", "/me", headers=cookie)).json()
    assert me["name"] == "admin"
    job = {"job_type": "greet"}
    for extra in (
        {},
        {"X-CSRF-Token": "é".encode("latin-1")},
        {"X-CSRF-Token": me["csrf"], **foreign},
    ):
        refused = await ask(None, "POST", "/jobs", json=job, headers={**cookie, **extra})
        assert refused.status_code == 403
    own = {**cookie, "X-CSRF-Token": me["csrf"], "Origin": "http://test"}
    assert (await ask(None, "POST", "/jobs", json=job, headers=own)).status_code == 202
    assert (await ask(None, "POST", "/logout", headers=own)).status_code == 204
    assert (await ask(None, "GET", "/me", headers=cookie)).status_code == 401
    assert [act[1] for act in audit_entries()] == [
        "principal.created",
        "session.opened",
        *["POST /jobs"] * 3,
        "job.submitted",
        "session.closed",
    ]


async def test_client_disconnect_in_body_is_not_internal_error(
    app: FastAPI, people: People, caplog: pytest.LogCaptureFixture
) -> None:
    boss = people.new("boss", "platform_admin")
    job_id = "00000000-0000-7000-8000-000000000000"
    key = {"idempotency-key": "k"}
    caplog.set_level(logging.ERROR)
    for path, more in (
        ("/jobs", {}),
        ("/jobs", key),
        ("/jobs/batch", {}),
        (f"/jobs/{job_id}/retry", key),
        ("/login", {}),
    ):
        sent: list[Any] = []
        coming = iter(
            ({"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"})
        )

        async def receive(coming: Iterator[Any] = coming) -> Any:
            return next(coming)

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        headers = {**boss.headers, "content-type": "application/json", **more}
        scope = {
            "type": "http", "http_version": "1.1", "method": "POST", "scheme": "http",
            "path": path, "raw_path": path.encode(), "root_path": "", "query_string": b"",
            "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
            "client": ("127.0.0.1", 1), "server": ("test", 80),
        }  # fmt: skip
        await app(scope, receive, send)
        assert sent[0]["status"] < 500, path
    assert not caplog.records


async def test_state_of_outer_application_is_untouched(app: FastAPI, people: People) -> None:
    """Applications use names like these for their own user."""
    ann = people.new("ann", "viewer")

    async def around(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "state": {"caller": "theirs", "passed": 1}}, receive, send)

    transport = httpx2.ASGITransport(around)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
        assert (await client.get("/me", headers=ann.headers)).json()["name"] == "ann"
        assert (await client.get("/jobs", headers=ann.headers)).status_code == 200
        assert (await client.get("/me")).status_code == 401
