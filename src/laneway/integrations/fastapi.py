"""Laneway inside a FastAPI or Starlette application: a worker that lives as long as it does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from laneway.integrations.signals import on_signal
from laneway.wiring import Laneway

Lifespan = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any]]]
Inner = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any] | None]]


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
