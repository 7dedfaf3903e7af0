"""Laneway inside a FastAPI or Starlette application: a worker that lives as long as it does.

`lifespan` starts and stops it; `install_errors` answers what Laneway refuses.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Final

from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.applications import Starlette

from laneway.api.http.problems import refusal
from laneway.app.laneway import Laneway
from laneway.errors import DatabaseUnavailable, InvalidInput, LanewayError, NotFound, Refused
from laneway.integrations.signals import on_signal

Lifespan = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any]]]
Inner = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any] | None]]

# Not Unauthenticated, Forbidden or RateLimited: a token of the application's own was refused then,
# and those who ask it can do nothing about that.
_ANSWERED: Final = (InvalidInput, NotFound, Refused, DatabaseUnavailable)


def lifespan(
    lw: Laneway,
    inner: Inner | None = None,
    *,
    run_worker: bool = True,
    lanes: Sequence[str] | None = None,
) -> Lifespan:
    """Starts a worker of `lw` with the application and stops it with it.

    app = FastAPI(lifespan=lifespan(lw))

    `inner`: a lifespan of your own; what it opens is there before the first job and closed after
    the last. `run_worker=False` or LANEWAY_WORKER=off: no worker, only an orderly end. `lanes`:
    the only ones the worker serves. Routes find `lw` as `request.state.laneway`.
    """

    @asynccontextmanager
    async def during(app: Any) -> AsyncIterator[Mapping[str, Any]]:
        async with AsyncExitStack() as stack:
            state = None if inner is None else await stack.enter_async_context(inner(app))
            lw.reopen()
            stack.push_async_callback(lw.close)
            # Servers wait for open requests before they tell of the end, and streams are open.
            stack.enter_context(on_signal(lambda: _end_streams(lw)))
            if run_worker:
                await _start_worker(lw, stack, lanes)
            yield {**(state or {}), "laneway": lw}

    return during


def install_errors(app: Starlette) -> None:
    """Answers what Laneway refuses in routes of `app` as problem details (RFC 9457), not as 500.

    `NotFound` 404, `InvalidInput` 422 with field and rule, `Refused` 409, `DatabaseUnavailable`
    503 with `Retry-After`. Other errors are left as they are. A handler that the application adds
    later for one of these takes its place.
    """
    for kind in _ANSWERED:
        app.add_exception_handler(kind, _answer)


async def _answer(request: Request, error: Exception) -> JSONResponse:
    answer = refusal(request, error) if isinstance(error, LanewayError) else None
    if answer is None:
        raise error
    return answer


def _end_streams(lw: Laneway) -> None:
    if lw.mounted is not None:
        lw.mounted.end_streams()


async def _start_worker(lw: Laneway, stack: AsyncExitStack, lanes: Sequence[str] | None) -> None:
    if lw.settings.worker != "off":
        # A worker would wait for its database; an application that cannot work must not start.
        await lw.ready()
    worker = lw.worker(only_lanes=None if lanes is None else frozenset(lanes))
    stack.push_async_callback(worker.stop)
    await worker.start()
