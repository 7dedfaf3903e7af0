"""The loop of `laneway top`: read, draw, obey keys."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rich.live import Live

from laneway.cli import output
from laneway.cli.job_ids import short_ids
from laneway.cli.output import for_people, show, visible
from laneway.cli.top_view import Effect, View, frame, of_active, of_job
from laneway.domain.filter import JobFilter
from laneway.domain.states import Status
from laneway.domain.verb_rules import LONGEST_PAGE
from laneway.errors import (
    DatabaseUnavailable,
    Forbidden,
    LanewayError,
    ServerUnreachable,
    UnsuitableDatabase,
)
from laneway.operations.workers import read_failures
from laneway.store.aborted_statements import StatementTimeout

if TYPE_CHECKING:
    from laneway.cli.connection import Backend

_ARROWS: Final = {"\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down"}
# Failures are counted over the newest 10,000 ends: not at every refresh.
_FAILURES_S: Final = 5.0
_HEIGHT: Final = 50
# The messages that end when the database can be read again.
_TROUBLE: Final = ("database unavailable", "a statement waited too long")


async def show_once(backend: Backend) -> None:
    """Print one frame."""
    top = Top(backend, 1.0)
    await top.read(_HEIGHT)
    show(frame(top.view, output.console().width, _HEIGHT, None))


class Top:
    """Reads, draws and obeys keys until `q`."""

    def __init__(self, backend: Backend, interval: float) -> None:
        self._backend = backend
        self._interval = interval
        self._failures_at: float | None = None
        self.view = View()

    async def run(self) -> None:
        screen = output.console()
        with keyboard() as keys, Live(console=screen, screen=True, auto_refresh=False) as live:

            def draw() -> None:
                shown = frame(self.view, screen.width, screen.height, self._interval)
                live.update(shown, refresh=True)

            loop = asyncio.get_running_loop()
            while True:
                await self.read(screen.height)
                draw()
                again = loop.time() + self._interval
                while (left := again - loop.time()) > 0:
                    try:
                        key = await asyncio.wait_for(keys.get(), left)
                    except TimeoutError:
                        break
                    self.view, effect = self.view.press(key)
                    if effect is Effect.QUIT:
                        return
                    if effect is not Effect.NONE:
                        await self._do(effect)
                        again = loop.time()
                    draw()

    async def read(self, limit: int) -> None:
        """Read everything that the screen shows; a failure becomes its message."""
        try:
            self.view = await self._read(limit)
        except UnsuitableDatabase:
            raise
        except StatementTimeout as error:
            self.view = replace(self.view, message=str(error))
        except DatabaseUnavailable as error:
            self.view = replace(self.view, message=f"database unavailable: {error}")
        except (ServerUnreachable, Forbidden) as error:
            if self.view.overview is None and isinstance(error, Forbidden):
                raise
            self.view = replace(self.view, message=str(error))

    async def _read(self, limit: int) -> View:
        view = self.view
        seen = await self._backend.overview(limit)
        view = replace(view, overview=seen, failures=await self._failures())
        if view.status is Status.RUNNING:
            rows = [of_active(job) for job in seen.active]
        else:
            listed = await self._backend.list_jobs(
                JobFilter(status=view.status), limit=min(limit, 200), cursor=None
            )
            rows = [of_job(job) for job in listed.items]
        known = {row.id: view.ids[row.id] for row in rows if row.id in view.ids}
        # A pipe has room for full ids.
        new = [row.id for row in rows if row.id not in known] if output.is_terminal() else []
        ids = known | (await short_ids(self._backend, new) if new else {})
        if view.message.startswith(_TROUBLE):
            view = replace(view, message="")
        return replace(view, rows=tuple(rows), ids=ids)

    async def _failures(self) -> dict[str, int]:
        now = asyncio.get_running_loop().time()
        if self._failures_at is not None and now - self._failures_at < _FAILURES_S:
            return dict(self.view.failures)
        found = await self._backend.call(read_failures(top=LONGEST_PAGE))
        self._failures_at = now
        counted: Counter[str] = Counter()
        for each in found.items:
            counted[each.lane] += each.failures
        return dict(counted)

    async def _do(self, effect: Effect) -> None:
        """Do the verb of a key on the selected job; its outcome is the message."""
        # Not the row under the cursor: the key was for this job, whatever is listed by now.
        job_id = self.view.selected
        if effect is Effect.READ or job_id is None:
            return
        try:
            if effect is Effect.EXPLAIN:
                found = await self._backend.explain(job_id)
                lines = [f"{found.id} {found.job_type} in {found.lane}: {found.label}", ""]
                lines += [f"{each.code}: {for_people(each.message)}" for each in found.reasons]
                self.view = replace(self.view, pages=tuple(map(visible, lines)))
                return
            if effect is Effect.CANCEL:
                job = await self._backend.cancel(job_id, "laneway top")
            else:
                job = await self._backend.retry(job_id)
            self.view = replace(self.view, message=f"job {job.id}: {job.label}")
        except LanewayError as error:
            self.view = replace(self.view, message=str(error))


@contextmanager
def keyboard() -> Iterator[asyncio.Queue[str]]:
    """The keys pressed, one by one; none if stdin is not a terminal."""
    keys: asyncio.Queue[str] = asyncio.Queue()
    if not sys.stdin.isatty():
        yield keys
        return
    import termios
    import tty

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    loop = asyncio.get_running_loop()

    def read() -> None:
        typed = os.read(number, 1024)
        if not typed:
            loop.remove_reader(number)
        for key in split_keys(typed.decode(errors="replace")):
            keys.put_nowait(key)

    # Single keys without Enter and without echo; Ctrl-C still interrupts.
    tty.setcbreak(number)
    loop.add_reader(number, read)
    try:
        yield keys
    finally:
        loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def split_keys(typed: str) -> Iterator[str]:
    """The keys in what a terminal sent at once; unknown escape sequences are left out."""
    rest = typed
    while rest:
        arrow = next((each for each in _ARROWS if rest.startswith(each)), None)
        if arrow is not None:
            yield _ARROWS[arrow]
            rest = rest[len(arrow) :]
        elif rest.startswith(("\x1b[", "\x1bO")):
            rest = rest[2:].lstrip("0123456789;?")[1:]
        else:
            yield "escape" if rest[0] == "\x1b" else rest[0]
            rest = rest[1:]
