"""Reads the event log continuously: each event once, however late its commit becomes visible."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from laneway.domain.event import Cursor, Event, LogPosition, Snapshot
from laneway.domain.job import Job
from laneway.store import events
from laneway.store.database import Database
from laneway.store.jobs import large_json_as_text
from laneway.streams.frames import Rendering

# Jobs in memory at a time: their payloads may be a megabyte each.
_AT_ONCE: Final = 50


class VisibleEvent(NamedTuple):
    """An event, and the two snapshots between which it became visible."""

    rendering: Rendering
    prev: Snapshot
    next: Snapshot
    log: str

    @property
    def event(self) -> Event:
        return self.rendering.event

    def topic_frame(self, *, debug: bool) -> bytes:
        return self.rendering.topic_frame(self.prev, self.next, self.log, debug=debug)

    def job_frame(self, *, debug: bool) -> bytes:
        return self.rendering.job_frame(self.log, debug=debug)


class LogReplaced(Exception):
    """The database was restored: positions in the old log mean nothing in the new one."""


class EventReader:
    """The position in the log. After a failed read, the next one continues exactly there."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Delivered: everything visible in `_prev`, and of `_next` the events up to `_after`.
        self._prev: str | None = None
        self._next: str | None = None
        self._after = 0
        self._log = ""

    @property
    def is_begun(self) -> bool:
        return self._prev is not None

    @property
    def here(self) -> Snapshot:
        if self._prev is None:
            raise RuntimeError("call begin() first")
        return Snapshot.of(self._prev)

    @property
    def log(self) -> str:
        """The id of the log."""
        return self._log

    async def begin(self) -> None:
        """Start after everything that is visible now."""
        prev, self._log = await self._database.run(events.position())
        self._prev, self._next, self._after = prev, None, 0

    def forget(self) -> None:
        self._prev = None

    async def advance(
        self,
        is_wanted: Callable[[Event], bool],
        deliver: Callable[[VisibleEvent], None],
        on_gone: Callable[[Event], None],
    ) -> None:
        """Deliver everything that is visible now; `on_gone` gets events of deleted jobs.

        LogReplaced: the log is another one than before; the position is forgotten.
        """
        if self._prev is None:
            await self.begin()
            return
        is_more = True
        while is_more:
            is_rest = self._next is not None
            read = events.between(self._prev, self._next, after=self._after)
            span = await self._database.run(read)
            prev, following = Snapshot.of(self._prev), Snapshot.of(span.next)
            # A lower number means that commits were lost and their numbers are used again.
            if span.log != self._log or following.xmax < prev.xmax:
                self.forget()
                raise LogReplaced
            for part in _parts(span.events, is_wanted):
                jobs = await read_jobs(self._database, part)
                # No await from here on, so that delivery and position stay in step.
                for event in part:
                    if event.seq is not None and event.seq not in jobs:
                        on_gone(event)
                    else:
                        deliver(VisibleEvent(rendered(event, jobs), prev, following, span.log))
                self._next, self._after = span.next, part[-1].id
            is_page = len(span.events) == events.PAGE
            if is_page:
                self._next, self._after = span.next, span.events[-1].id
            else:
                self._prev, self._next, self._after = span.next, None, 0
            # The rest of an earlier read ends at its snapshot: there may be more by now.
            is_more = is_page or is_rest


async def between(
    database: Database,
    since: Cursor,
    here: Snapshot,
    is_wanted: Callable[[Event], bool],
    shows_debug: Callable[[Event], bool],
) -> AsyncIterator[bytes]:
    """The frames between a reader's cursor and a snapshot, page by page."""
    for prev, following, after in ((since.prev, since.next, since.id), (since.next, here, 0)):
        is_more = prev != following
        while is_more:
            read = events.between(str(prev), str(following), after=after)
            found = (await database.run(read)).events
            for part in _parts(found, is_wanted):
                jobs = await read_jobs(database, part)
                for event in part:
                    if event.seq is None or event.seq in jobs:
                        debug = shows_debug(event)
                        yield rendered(event, jobs).topic_frame(
                            prev, following, since.log, debug=debug
                        )
            is_more = len(found) == events.PAGE
            after = found[-1].id if found else after


def _parts(found: Sequence[Event], is_wanted: Callable[[Event], bool]) -> Iterator[list[Event]]:
    wanted = [event for event in found if is_wanted(event)]
    for start in range(0, len(wanted), _AT_ONCE):
        yield wanted[start : start + _AT_ONCE]


async def read_jobs(database: Database, wanted: Iterable[Event]) -> dict[int, Job]:
    """The current state of these events' jobs, without deleted ones."""
    seqs = {event.seq for event in wanted if event.seq is not None}
    if not seqs:
        return {}
    with large_json_as_text():
        return await database.run(events.jobs(seqs))


def rendered(event: Event, jobs: dict[int, Job], name: str | None = None) -> Rendering:
    return Rendering(event, None if event.seq is None else jobs[event.seq], name)


async def read_log(
    database: Database, seq: int, last: LogPosition | None
) -> tuple[events.JobLog, Sequence[Rendering]]:
    """The events of a job after a position; its current state if the position is unknown."""
    after, of = (None, None) if last is None else (last.id, last.log)
    log = await database.run(events.of_job(seq, after, log=of))
    found, page = list(log.events), log.events
    while len(page) == events.PAGE:
        page = (await database.run(events.of_job(seq, found[-1].id, log=log.log))).events
        found += page
    jobs = await read_jobs(database, found)
    if seq not in jobs:
        return log, []
    return log, [
        rendered(e, jobs, None if log.is_known or e.is_terminal else "job.state") for e in found
    ]
