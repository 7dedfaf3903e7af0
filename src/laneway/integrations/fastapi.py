"""A worker inside a FastAPI or Starlette application.

`lifespan` starts and stops it; `install_errors` turns Laneway's errors into HTTP responses;
`job_events` streams a job's changes from a route of the application.
"""

# ruff: noqa: E402 - a missing package is named before the imports below fail

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Final
from uuid import UUID

from laneway.extras import require

require("server", "laneway.integrations.fastapi")

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from starlette.applications import Starlette

from laneway.api.http.problems import refusal
from laneway.api.routes.events import follow_job
from laneway.app.laneway import Laneway
from laneway.domain.permissions import Access, Grant
from laneway.errors import (
    DatabaseUnavailable,
    InvalidInput,
    LanewayError,
    NotFound,
    RateLimited,
    Refused,
)
from laneway.integrations.signals import on_signal

Lifespan = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any]]]
Inner = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any] | None]]

# Not Unauthenticated, Forbidden or RateLimited: those refuse the application's own token, and its
# clients cannot do anything about that.
_HANDLED: Final = (InvalidInput, NotFound, Refused, DatabaseUnavailable)
# Reads all jobs, without private error messages.
_READER: Final = Access(UUID(int=0), "", "service", (Grant(frozenset({"jobs:read"}), "all"),))


def lifespan(
    lw: Laneway,
    inner: Inner | None = None,
    *,
    run_worker: bool = True,
    lanes: Sequence[str] | None = None,
) -> Lifespan:
    """Starts a worker of `lw` with the application, and stops it with the application.

    app = FastAPI(lifespan=lifespan(lw))

    `inner` is your lifespan: it starts before the first job and ends after the last. With
    `run_worker=False` or LANEWAY_WORKER=off no worker runs, and only the shutdown is handled.
    `lanes` restricts the worker to these lanes. Routes read `lw` as `request.state.laneway`.
    """

    @asynccontextmanager
    async def during(app: Any) -> AsyncIterator[Mapping[str, Any]]:
        async with AsyncExitStack() as stack:
            state = None if inner is None else await stack.enter_async_context(inner(app))
            lw.reopen()
            stack.push_async_callback(lw.close)
            # Servers wait for open requests before they end the lifespan, so end streams first.
            stack.enter_context(on_signal(lambda: _end_streams(lw)))
            if run_worker:
                await _start_worker(lw, stack, lanes)
            yield {**(state or {}), "laneway": lw}

    return during


def install_errors(app: Starlette) -> None:
    """Answers Laneway's errors in routes of `app` with problem details (RFC 9457) instead of 500.

    `NotFound` 404, `InvalidInput` 422 with field and rule, `Refused` 409, `DatabaseUnavailable`
    503 with `Retry-After`. Other errors are not handled. An exception handler that the
    application adds later for one of these replaces it.
    """
    for kind in _HANDLED:
        app.add_exception_handler(kind, _respond)


async def job_events(lw: Laneway, request: Request, job_id: UUID | str) -> Response:
    """Streams the changes of a job as server-sent events, from your own route.

    @app.get("/orders/{job_id}/events")
    async def follow(request: Request, job_id: UUID) -> Response:
        ...  # check that this caller may see the job
        return await job_events(lw, request, job_id)

    Your route decides who may read it: the request needs no token of Laneway, and the events
    contain the job with its payload. It continues after the request's `Last-Event-ID`, and responds
    with 204 if the client has received the job's end. `NotFound` without such a job.
    """
    try:
        checked = job_id if isinstance(job_id, UUID) else UUID(job_id)
    except ValueError:
        raise InvalidInput("job_id", "must be a UUID") from None
    last = request.headers.get("last-event-id")
    try:
        return await follow_job(lw.asgi().app.state, checked, last, _READER, None)
    except RateLimited as error:
        return await _respond(request, error)


async def _respond(request: Request, error: Exception) -> JSONResponse:
    response = refusal(request, error) if isinstance(error, LanewayError) else None
    if response is None:
        raise error
    return response


def _end_streams(lw: Laneway) -> None:
    if lw.mounted is not None:
        lw.mounted.end_streams()


async def _start_worker(lw: Laneway, stack: AsyncExitStack, lanes: Sequence[str] | None) -> None:
    if lw.settings.worker != "off":
        # A worker waits for its database, but an application without one must fail to start.
        await lw.ready()
    worker = lw.worker(only_lanes=lanes)
    stack.push_async_callback(worker.stop)
    await worker.start()
