"""A worker inside a FastAPI or Starlette application.

`lifespan` starts and stops it; `install_errors` turns Laneway's errors into HTTP responses.
"""

# ruff: noqa: E402 - a missing package is named before the imports below fail

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Final

from laneway.extras import require

require("server", "laneway.integrations.fastapi")

from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.applications import Starlette

from laneway.api.http.problems import refusal
from laneway.app.laneway import Laneway
from laneway.errors import DatabaseUnavailable, InvalidInput, LanewayError, NotFound, Refused
from laneway.integrations.signals import on_signal

Lifespan = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any]]]
Inner = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any] | None]]

# Not Unauthenticated, Forbidden or RateLimited: those refuse the application's own token, and its
# clients cannot do anything about that.
_HANDLED: Final = (InvalidInput, NotFound, Refused, DatabaseUnavailable)


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
