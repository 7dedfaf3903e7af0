"""Laneway inside a FastAPI application: an embedded worker, and the API under a prefix."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx2
import psycopg
import pytest
import uvicorn
from fastapi import FastAPI, Request, Response

from laneway import Context, Laneway
from laneway.control import access, sessions
from laneway.errors import (
    DatabaseUnavailable,
    Forbidden,
    InvalidInput,
    JobFailed,
    LanewayError,
    NotFound,
    Refused,
    SchemaMismatch,
)
from laneway.integrations.fastapi import install_errors, job_events, lifespan

HOME = "http://shop.test"


def made(dsn: str, **settings: Any) -> Laneway:
    lw = Laneway(dsn, **settings)

    @lw.handler("greet")
    async def greet(ctx: Context, name: str) -> str:
        return f"hello {name}"

    return lw


@asynccontextmanager
async def running(app: Any, *, started: Any = None) -> AsyncIterator[httpx2.AsyncClient]:
    """Run an application; yield a client of it."""
    own = app.router.lifespan_context if started is None else started
    async with own(app) as state:
        asked = _with_state(app, state or {})
        transport = httpx2.ASGITransport(asked)
        async with httpx2.AsyncClient(transport=transport, base_url=HOME) as client:
            yield client


def _with_state(app: Any, state: dict[str, Any]) -> Any:
    async def asked(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "state": dict(state)}, receive, send)

    return asked


async def token_of(lw: Laneway, name: str = "ann", role: str = "operator") -> dict[str, str]:
    await lw.operate(access.create_principal, name, "service", by="tests")
    await lw.operate(access.grant_role, name, role, "all", by="tests")
    token = await lw.operate(access.create_token, name, "test", by="tests")
    return {"Authorization": f"Bearer {token.secret}"}


def is_connected(dsn: str) -> bool:
    """Whether a connection of the application or its API is open; one that closes gets a moment."""
    query = """
        select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
           and application_name like 'laneway%'
    """
    with psycopg.connect(dsn, autocommit=True, application_name="tests") as conn:
        deadline = time.monotonic() + 10
        while (found := conn.execute(query).fetchone()) and time.monotonic() < deadline:
            time.sleep(0.01)
    return found is not None


async def test_worker_starts_with_the_application_and_stops_with_it(dsn: str) -> None:
    lw = made(dsn)
    app = FastAPI(lifespan=lifespan(lw))

    @app.post("/greetings/{name}")
    async def greet(request: Request, name: str) -> object:
        job = await request.state.laneway.submit("greet", {"name": name})
        return await job.wait(timeout=60)

    for name in ("Bo", "Cy"):  # an application may start again in one process: tests do it
        async with running(app) as client:
            assert (await client.post(f"/greetings/{name}")).json() == f"hello {name}"
    with psycopg.connect(dsn) as conn:
        ended = "select count(*) from laneway.workers where stopped_at is null"
        assert conn.execute(ended).fetchone() == (0,)
    assert not is_connected(dsn)


async def test_stopping_lets_a_running_job_finish(dsn: str) -> None:
    lw = Laneway(dsn)
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    @lw.handler("slow")
    async def slow(ctx: Context) -> str:
        has_begun.set()
        await may_end.wait()
        return "done"

    async with running(FastAPI(lifespan=lifespan(lw))):
        job = await lw.submit("slow", {})
        await has_begun.wait()
        asyncio.get_running_loop().call_later(0.05, may_end.set)
    with psycopg.connect(dsn) as conn:
        found = conn.execute("select status from laneway.jobs_view where id = %s", [job.id])
        assert found.fetchone() == ("completed",)


@pytest.mark.parametrize("is_off", [True, False])
async def test_worker_is_kept_out_by_setting_or_argument(
    dsn: str, monkeypatch: pytest.MonkeyPatch, is_off: bool
) -> None:
    if is_off:
        monkeypatch.setenv("LANEWAY_WORKER", "off")
    lw = made(dsn)
    async with running(FastAPI(lifespan=lifespan(lw, run_worker=is_off))):
        await lw.submit("greet", {"name": "Bo"})
        with psycopg.connect(dsn) as conn:
            assert conn.execute("select count(*) from laneway.workers").fetchone() == (0,)


async def test_worker_serves_only_the_lanes_it_is_given(dsn: str) -> None:
    async with running(FastAPI(lifespan=lifespan(made(dsn), lanes=["system"]))):
        with psycopg.connect(dsn) as conn:
            assert conn.execute("select lanes from laneway.workers").fetchall() == [(["system"],)]


async def test_own_lifespan_wraps_worker(dsn: str) -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def own(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        seen.append("opened")
        yield {"shop": "open"}
        seen.append("closed")

    lw = made(dsn)
    lw.on_start(lambda resources: seen.append("started"))
    lw.on_stop(lambda resources: seen.append("stopped"))
    app = FastAPI(lifespan=lifespan(lw, own))

    @app.get("/")
    async def state(request: Request) -> str:
        return str(request.state.shop)

    async with running(app) as client:
        assert (await client.get("/")).json() == "open"
    assert seen == ["opened", "started", "stopped", "closed"]


async def test_application_whose_worker_cannot_start_does_not_start(empty_dsn: str) -> None:
    nowhere = "postgresql://user@127.0.0.1:1/none"
    for dsn, trouble in ((nowhere, DatabaseUnavailable), (empty_dsn, SchemaMismatch)):
        closed: list[str] = []

        @asynccontextmanager
        async def own(app: FastAPI, closed: list[str] = closed) -> AsyncIterator[None]:
            try:
                yield
            finally:
                closed.append("closed")

        with pytest.raises(trouble):
            async with running(FastAPI(lifespan=lifespan(made(dsn), own))):
                pytest.fail("started")
        assert closed == ["closed"]


# Errors in routes of the application -----------------------------------------------------------


def refusing(error: LanewayError) -> FastAPI:
    app = FastAPI()
    install_errors(app)

    @app.get("/")
    async def refuse() -> None:
        raise error

    return app


@pytest.mark.parametrize(
    "error, status, code",
    [
        (NotFound("no job 7"), 404, "not_found"),
        (InvalidInput("job_id", "is not a UUID"), 422, "invalid_input"),
        (Refused("it has ended"), 409, "refused"),
        (JobFailed("it was cancelled"), 409, "job_failed"),
        (DatabaseUnavailable("db.example of bob is away"), 503, "database_unavailable"),
        (SchemaMismatch("run laneway db migrate"), 503, "schema_mismatch"),
    ],
)
async def test_refusal_in_route_is_returned_as_problem(
    error: LanewayError, status: int, code: str
) -> None:
    async with running(refusing(error)) as client:
        answer = await client.get("/")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert "request_id" not in answer.json()
    assert ("retry-after" in answer.headers) == (status == 503)
    assert "bob" not in answer.text
    if isinstance(error, InvalidInput):
        assert answer.json()["errors"] == [{"field": "job_id", "rule": "is not a UUID"}]


async def test_problem_has_the_id_that_the_application_gave_the_request() -> None:
    app = refusing(NotFound("no job 7"))
    async with running(app, started=_giving_ids) as client:
        assert (await client.get("/")).json()["request_id"] == "order-7"


@asynccontextmanager
async def _giving_ids(app: Any) -> AsyncIterator[dict[str, str]]:
    yield {"request_id": "order-7"}


async def test_internal_errors_stay_errors_of_application() -> None:
    error = Forbidden("the application's own token may not do this")
    with pytest.raises(Forbidden):
        async with running(refusing(error)) as client:
            await client.get("/")


async def test_invalid_or_unknown_job_id_is_not_server_error(dsn: str) -> None:
    lw = made(dsn)
    app = FastAPI(lifespan=lifespan(lw, run_worker=False))
    install_errors(app)
    app.mount("/laneway", lw.asgi())

    @app.get("/greetings/{job_id}")
    async def read(job_id: str) -> object:
        return await lw.wait(job_id, timeout=30)

    async with running(app) as client:
        wrong = await client.get("/greetings/abc")
        assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "id")
        unknown = await client.get(f"/greetings/{UUID(int=7)}")
        assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
        assert "request_id" in (await client.get("/laneway/jobs")).json()


# The API under a prefix ------------------------------------------------------------------------


async def test_api_describes_itself_correctly_under_prefix(dsn: str) -> None:
    lw = made(dsn)
    app = FastAPI(lifespan=lifespan(lw))
    app.mount("/laneway", lw.asgi())
    async with running(app) as client:
        assert (await client.get("/laneway/jobs")).status_code == 401
        assert (await client.get("/laneway/readyz")).status_code == 200
        client.headers.update(await token_of(lw))
        new = {"job_type": "greet", "payload": {"name": "Bo"}}
        submitted = await client.post("/laneway/jobs", json=new)
        assert submitted.headers["location"] == f"/laneway/jobs/{submitted.json()['id']}"
        assert await lw.wait(submitted.json()["id"], timeout=30) == "hello Bo"
        job = (await client.get(submitted.headers["location"])).json()
        assert (job["status"], job["created_by"]) == ("completed", "ann")
        lane = await client.post("/laneway/admin/workers/lanes", json={"name": "side"})
        assert lane.headers["location"].startswith("/laneway/admin/")
        document = (await client.get("/laneway/openapi.json")).json()
        assert document["servers"] == [{"url": "/laneway"}]
        assert "/jobs" in document["paths"]
        assert "<code>/laneway/jobs</code>" in (await client.get("/laneway/docs")).text
        assert (await client.get("/jobs")).status_code == 404


async def test_browser_logs_in_under_a_prefix(dsn: str) -> None:
    lw = made(dsn)
    app = FastAPI(lifespan=lifespan(lw, run_worker=False))
    app.mount("/laneway", lw.asgi())
    async with running(app) as client:
        await lw.operate(access.create_principal, "ann", "person", by="tests")
        await lw.operate(access.grant_role, "ann", "submitter", "own", by="tests")
        link = await lw.operate(sessions.create_login_link, "ann", by="tests")
        page = await client.get("/laneway/login", params={"link": link})
        action = re.search(r"action=\"?([\w/]+)", page.text)
        assert action is not None
        login = page.url.join(action[1])
        foreign = {"Origin": "http://evil.test"}
        refused = await client.post(login, data={"link": link}, headers=foreign)
        assert refused.status_code == 403
        entered = await client.post(login, data={"link": link}, headers={"Origin": HOME})
        assert entered.status_code == 303
        target = login.join(entered.headers["location"])
        assert target.path == "/laneway/ui/"
        assert "Path=/laneway/" in entered.headers["set-cookie"]
        assert (await client.get(target)).status_code < 400
        csrf = {"X-CSRF-Token": (await client.get("/laneway/me")).json()["csrf"]}
        new = {"job_type": "greet", "payload": {"name": "Bo"}}
        assert (await client.post("/laneway/jobs", json=new)).status_code == 403
        spoiled = {**csrf, **foreign}
        assert (await client.post("/laneway/jobs", json=new, headers=spoiled)).status_code == 403
        good = {**csrf, "Origin": HOME}
        assert (await client.post("/laneway/jobs", json=new, headers=good)).status_code == 202
        left = await client.post("/laneway/logout", headers=good)
        assert "Path=/laneway/" in left.headers["set-cookie"]
        assert (await client.get("/laneway/me")).status_code == 401


async def test_without_a_lifespan_the_api_works_until_it_is_closed(dsn: str) -> None:
    lw = made(dsn)
    app = FastAPI()
    app.mount("/laneway", lw.asgi())
    async with running(app) as client:
        client.headers.update(await token_of(lw))
        assert (await client.get("/laneway/jobs")).json()["items"] == []
        await lw.close()
        assert (await client.get("/laneway/jobs", params={"limit": 7})).status_code == 503
        lw.reopen()
        assert (await client.get("/laneway/jobs")).status_code == 200
    await lw.close()


async def test_served_by_itself_the_api_ends_with_its_server(dsn: str) -> None:
    lw = made(dsn)
    api = lw.asgi()
    sent: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
    received: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
    serving = asyncio.ensure_future(api({"type": "lifespan"}, received.get, sent.put))
    await received.put({"type": "lifespan.startup"})
    assert (await sent.get())["type"] == "lifespan.startup.complete"
    transport = httpx2.ASGITransport(api)
    async with httpx2.AsyncClient(transport=transport, base_url=HOME) as client:
        assert (await client.get("/readyz")).status_code == 200
        await received.put({"type": "lifespan.shutdown"})
        assert (await sent.get())["type"] == "lifespan.shutdown.complete"
        await serving
        assert not is_connected(dsn)


async def test_streams_of_the_api_do_not_keep_the_application_from_ending(dsn: str) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        lw = made(dsn)
        app = FastAPI(lifespan=lifespan(lw, run_worker=False))
        app.mount("/laneway", lw.asgi())
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
        serving = asyncio.ensure_future(server.serve())
        while not server.started:  # noqa: ASYNC110 -- it tells no other way
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}/laneway") as client:
            client.headers.update(await token_of(lw))
            job = await lw.submit("greet", {"name": "Bo"})
            async with client.stream("GET", f"/jobs/{job.id}/stream") as stream:
                parts = stream.aiter_bytes()
                while b"job.state" not in await anext(parts):
                    pass
                os.kill(os.getpid(), signal.SIGTERM)
                assert [part async for part in parts] == []
        await serving
        # uvicorn re-raises its signal after it has stopped.
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def following(lw: Laneway) -> FastAPI:
    """An application whose own route streams the events of a job."""
    app = FastAPI(lifespan=lifespan(lw))
    install_errors(app)

    @app.get("/{job_id}/events")
    async def events(request: Request, job_id: str) -> Response:
        return await job_events(lw, request, job_id)

    return app


async def test_own_route_streams_a_job_without_a_token(dsn: str) -> None:
    lw = made(dsn)

    @lw.handler("fails", max_retries=0)
    async def fails(ctx: Context) -> None:
        raise ValueError("a private text")

    async with running(following(lw)) as client:
        job = await lw.submit("fails")
        page = await client.get(f"/{job.id}/events")
        assert page.headers["content-type"].startswith("text/event-stream")
        assert "event: job.failed" in page.text
        assert "a private text" not in page.text
        (last,) = re.findall(r"id: (\S+)", page.text)[-1:]
        seen = await client.get(f"/{job.id}/events", headers={"Last-Event-ID": last})
        assert (seen.status_code, seen.content) == (204, b"")


async def test_own_route_refuses_before_the_stream_begins(dsn: str) -> None:
    lw = made(dsn)
    async with running(following(lw)) as client:
        missing = await client.get(f"/{UUID(int=7)}/events")
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
        wrong = await client.get("/seven/events")
        assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "job_id")
        job = await lw.submit("greet", {"name": "Ann"})
        await job.wait(60)
        unread = {"Last-Event-ID": "no id"}
        assert (await client.get(f"/{job.id}/events", headers=unread)).status_code == 422


async def test_own_streams_are_bounded_by_the_server_only(dsn: str) -> None:
    lw = made(dsn, max_streams=3, max_streams_per_token=1, worker="off")
    app = following(lw)
    async with lw:
        job = await lw.submit("greet", {"name": "Ann"})
        request = Request({"type": "http", "headers": [], "app": app, "state": {}})
        opened = [await job_events(lw, request, job.id) for _ in range(4)]
        assert [response.status_code for response in opened] == [200, 200, 200, 429]
