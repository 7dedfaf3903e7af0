"""An application bound to the database of a test, and the verbs that tests have for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from laneway.app.laneway import Laneway
from laneway.config.settings import Settings
from laneway.engine.run.attempt import current_run
from laneway.errors import LanewayError
from laneway.testing.due_worker import DueWorker
from laneway.testing.recorded_handlers import InjectedFailures, RecordedHandlers
from laneway.testing.report import RunReport
from laneway.testing.scratch_database import ScratchDatabase

MAX_JOBS: Final = 1000
TIMEOUT_S: Final = 60.0


class BoundApp:
    """`lw` uses this database until the end of the test."""

    def __init__(self, lw: Laneway, database: ScratchDatabase) -> None:
        self.lw = lw
        self.database = database
        self.injected = InjectedFailures()

    async def run_due(self, *, max_jobs: int, timeout: float, concurrency: int) -> RunReport:
        """Run everything that is due to its end, and return what ran."""
        if current_run.get() is not None:
            raise LanewayError("run_due was called by a handler: it would wait for itself")
        worker = self._worker(concurrency, RecordedHandlers(self.lw.handlers, self.injected))
        async with _stopped_at_once(worker):
            await worker.run_due(max_jobs, timeout)
        return RunReport(tuple(worker.attempts))

    async def plan(self) -> None:
        """Create what a starting worker creates, and plan the schedules from now on."""
        handlers = RecordedHandlers(self.lw.handlers, self.injected)
        # Hooks may be expensive, and no handler runs here.
        handlers.on_start, handlers.on_stop = [], []
        worker = self._worker(1, handlers)
        async with _stopped_at_once(worker):
            await worker.lead()

    def _worker(self, concurrency: int, handlers: RecordedHandlers) -> DueWorker:
        settings = changed(self.lw.settings, listen=False)
        return DueWorker(self.database, settings, handlers, concurrency)


@asynccontextmanager
async def _stopped_at_once(worker: DueWorker) -> AsyncIterator[None]:
    """Start a worker, and stop it without a grace."""
    await worker.start()
    try:
        yield
    finally:
        await worker.stop(0.0)


def changed(settings: Settings, **changes: object) -> Settings:
    """A copy of settings with other values; nothing that they cached is kept."""
    fields = {name: getattr(settings, name) for name in Settings.model_fields}
    return Settings.model_construct(**{**fields, **changes})


_current: BoundApp | None = None


_CURE: Final = "request the fixture laneway_app in this test, or use laneway.testing.bind"


def current() -> BoundApp:
    """The application of the running test."""
    if _current is None:
        raise LanewayError(f"no application is bound to a test database: {_CURE}")
    return _current


def check_bound(lw: object) -> None:
    """Raise if an application is about to open its own database instead of a test's."""
    if _current is None or _current.lw is not lw:
        raise LanewayError(
            f"the application under test would use its own database, not a test database: {_CURE}"
        )


@contextmanager
def bind(lw: Laneway, database: ScratchDatabase) -> Iterator[BoundApp]:
    """Let `lw` use a freshly emptied test database inside `with`."""
    global _current
    if _current is not None:
        raise LanewayError("an application is already bound to a test database")
    before = lw.settings
    run_apart(lw.close)
    lw.reopen()
    database.reset()
    lw.settings = changed(
        before, database_url=database.dsn, pg_variables=False, listen_dsn=None, worker="on"
    )
    lw.wait_cure = "call run_due() first: no worker runs in this test"
    _current = bound = BoundApp(lw, database)
    try:
        if lw.handlers.schedules:
            run_apart(bound.plan)
        yield bound
    finally:
        _current = None
        lw.wait_cure = None
        run_apart(lw.close)
        lw.reopen()
        lw.settings = before


def run_apart(work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Run a coroutine in a separate thread: this one may have a running event loop."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="laneway testing")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
