"""The open streams of a replica, served by one reader of the event log."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Final

from laneway.config.settings import Settings
from laneway.domain.event import CONTROL, EVERY_JOB, Cursor, Event, LogPosition
from laneway.domain.permissions import Access
from laneway.errors import LanewayError, RateLimited
from laneway.observability.safe_logger import SafeLogger
from laneway.store import events, local_notify
from laneway.store.database import Database
from laneway.store.notify import Listener
from laneway.streams.debounce import Debounce
from laneway.streams.event_reader import (
    EventReader,
    LogReplaced,
    VisibleEvent,
    between,
    read_log,
)
from laneway.streams.frames import Rendering
from laneway.streams.stream import JobStream, Stream, TopicStream

log = SafeLogger(__name__)

Review = Callable[[Collection[bytes]], Awaitable[dict[bytes, Access]]]

# The poll interval while LISTEN works, because a notification may be lost.
LISTEN_POLL_S: Final = 5.0
# A revoked token's streams end within five seconds: this, plus two seconds of cached access.
REVIEW_S: Final = 2.0
RETRY_S: Final = 1.0
# The minimum time between two reads.
MIN_READ_GAP_S: Final = 0.01
# Delay between a notification and the read. A submitted job is claimed right after: one read serves
# both, and the processor is free for the workers.
NOTIFY_DELAY_S: Final = 0.02
# The tasks continue this long after the last stream has left, because another may follow.
LINGER_S: Final = 10.0
# When the server stops, clients have this long to read the remaining frames.
FLUSH_S: Final = 2.0


class Hub:
    """Polls the event log once for all streams; without streams it does not poll."""

    def __init__(self, database: Database, settings: Settings, review: Review) -> None:
        self._database = database
        self._settings = settings
        self._review = review
        # A watch outlives its last stream, so that the stream can resume on another replica.
        self._keep_s = 1.5 * settings.event_retention
        self._streams: set[Stream] = set()
        # By watched job, so that an event is only offered to streams that may want it.
        self._by_watch: defaultdict[int, set[Stream]] = defaultdict(set)
        self._per_token: Counter[bytes | None] = Counter()
        self._unsettled: set[int] = set()
        self._reader = EventReader(database)
        # Held while the log is read and while a stream joins, so that no event is missed.
        self._reading = asyncio.Lock()
        self._changed = asyncio.Event()
        self._notified = Debounce(NOTIFY_DELAY_S, self._changed.set)
        self._listener: Listener | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stopped: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def is_listening(self) -> bool:
        """Whether notifications of other processes arrive; never without streams."""
        return self._listener is not None and self._listener.is_listening

    @property
    def open_streams(self) -> int:
        return len(self._streams)

    def wake(self) -> None:
        """Read the log now, because a job changed. Costs nothing without streams."""
        self._changed.set()

    # -- joining and leaving ------------------------------------------------------------------

    def enter(self, stream: Stream) -> None:
        """Add a stream, or refuse it. The caller must `leave` with it at the end."""
        if self._is_closed:
            raise RateLimited("this server is stopping: try another one")
        if len(self._streams) >= self._settings.max_streams:
            most = f"at most {self._settings.max_streams} (max_streams)"
            raise RateLimited(f"too many streams on this server, {most}: try another one", 5.0)
        is_bounded = stream.digest is not None
        if is_bounded and self._per_token[stream.digest] >= self._settings.max_streams_per_token:
            most = f"at most {self._settings.max_streams_per_token} (max_streams_per_token)"
            raise RateLimited(f"too many streams with this token or session, {most}", 5.0)
        self._streams.add(stream)
        for seq in stream.watched:
            self._by_watch[seq].add(stream)
        self._per_token[stream.digest] += 1
        if not self._tasks:
            loop = asyncio.get_running_loop()
            local_notify.subscribe(self, lambda: _set_in(loop, self._changed))
            loops = (self._follow, self._listen, self._maintain)
            self._tasks = [
                # In an empty context: the tasks outlive the request that started them.
                asyncio.create_task(
                    each(), name=f"laneway hub {each.__name__}", context=contextvars.Context()
                )
                for each in loops
            ]

    def leave(self, stream: Stream) -> None:
        if stream in self._streams:
            self._streams.discard(stream)
            self._per_token -= Counter({stream.digest: 1})
            for seq in stream.watched:
                self._by_watch[seq].discard(stream)
                if not self._by_watch[seq]:
                    del self._by_watch[seq]

    async def join_job(
        self, stream: JobStream, last: LogPosition | None
    ) -> deque[Rendering] | None:
        """Start delivery. Returns the first events: the job's current state, or everything after
        the reader's last event. None: the reader has already seen the job's end."""
        await self._begin()
        await self._watch(stream.watched)
        async with self._reading:
            found, renderings = await read_log(self._database, stream.seq, last)
            stream.log = found.log
            if found.log != self._reader.log:
                self._end_replaced()
            # Its watch, or even the number of its job, may belong to a log that was replaced.
            is_lost = stream.is_ended
            if is_lost:
                return deque()
            if found.is_over:
                return None
            first: deque[Rendering] = deque()
            for each in renderings:
                if not stream.is_ended and stream.wants(each.event):
                    first.append(each)
                    stream.last_id = each.event.id
                    if each.event.is_terminal:
                        stream.end()
            if last is not None and found.is_known and not found.events:
                stream.last_id = last.id
            elif not first:
                # The job was deleted meanwhile, or is out of reach.
                stream.end()
            stream.is_live = not stream.is_ended
            return first

    async def join_topics(self, stream: TopicStream, since: Cursor | None) -> tuple[bool, Cursor]:
        """Start delivery. Returns whether the log is complete since the cursor, and the position
        from which events are delivered; `missed` returns the events between the two."""
        await self._begin()
        can_resume = since is not None and await self._database.run(
            events.can_resume(stream.watched, str(since.prev), since.log)
        )
        await self._watch(stream.watched)
        async with self._reading:
            # Read past everything that another replica may have delivered before.
            await self._advance()
            if not self._reader.is_begun:
                await self._reader.begin()
            stream.is_live = not stream.is_ended
            here = self._reader.here
            return can_resume, Cursor(here, here, 0, self._reader.log)

    def missed(self, stream: TopicStream, since: Cursor, here: Cursor) -> AsyncIterator[bytes]:
        return between(self._database, since, here.next, stream.wants, stream.shows_debug)

    async def _begin(self) -> None:
        """Start reading before a watch is opened, so that a later restore is noticed."""
        async with self._reading:
            if not self._reader.is_begun:
                await self._reader.begin()

    async def _watch(self, seqs: Collection[int]) -> None:
        """Make every process log all changes of these jobs from now on."""
        unsettled = await self._database.run(events.open_watches(seqs, self._keep_s))
        if unsettled:
            self._unsettled |= unsettled
            settled = await self._database.run(events.reconcile(unsettled))
            self._unsettled -= settled

    def end_streams(self) -> None:
        """End every stream, so that readers resume on another replica; refuse new ones."""
        self._is_closed = True
        for stream in list(self._streams):
            stream.end()
        if self._streams:
            asyncio.get_running_loop().call_later(FLUSH_S, self._drop_all)

    def _drop_all(self) -> None:
        for stream in list(self._streams):
            stream.drop()

    async def close(self) -> None:
        self.end_streams()
        self._stop_tasks()
        if self._stopped:
            await asyncio.wait(self._stopped)

    # -- tasks that run while there are streams -------------------------------------------------

    async def _follow(self) -> None:
        """Read the log on changes and at intervals."""
        idle_since = read_at = time.monotonic()
        is_failing = False
        while True:
            await self._pause()
            await asyncio.sleep(max(0.0, read_at + MIN_READ_GAP_S - time.monotonic()))
            read_at = time.monotonic()
            if self._streams:
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since > LINGER_S:
                self._stop_tasks()
                return
            try:
                await self._settle()
                async with self._reading:
                    await self._advance()
                is_failing = False
            except LanewayError as error:
                if not is_failing:
                    log.warning("streams are waiting for the database: %s", error)
                is_failing = True
                await asyncio.sleep(RETRY_S)
            except Exception:
                # Close the streams so that clients reconnect instead of hanging.
                log.exception("events cannot be delivered: closing all streams")
                self._reader.forget()
                for stream in list(self._streams):
                    stream.end()

    async def _pause(self) -> None:
        # Changes of many jobs at a time are not all notified, so poll for those.
        watches_every_job = EVERY_JOB in self._by_watch
        is_slow = self.is_listening and not watches_every_job and not self._unsettled
        try:
            async with asyncio.timeout(
                LISTEN_POLL_S if is_slow else self._settings.event_poll_ms / 1000
            ):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()

    def _stop_tasks(self) -> None:
        """Stop without streams; the next stream starts the tasks again."""
        for task in self._tasks:
            self._stopped.add(task)
            task.add_done_callback(self._stopped.discard)
            if task is not asyncio.current_task():
                task.cancel()
        self._tasks = []
        self._notified.cancel()
        self._reader.forget()
        local_notify.unsubscribe(self)

    async def _settle(self) -> None:
        """Log changes by transactions that began before a watch and could not see it."""
        self._unsettled &= self._by_watch.keys()
        if self._unsettled:
            settled = await self._database.run(events.reconcile(self._unsettled))
            self._unsettled -= settled

    async def _advance(self) -> None:
        if self._streams:
            try:
                await self._reader.advance(self._is_wanted, self._deliver, self._end_deleted)
            except LogReplaced:
                self._end_replaced()

    def _end_replaced(self) -> None:
        """End every stream: neither its watch nor its position exists in the new log."""
        log.warning("the database was restored: closing all streams, clients reconnect")
        self._reader.forget()
        self._unsettled.clear()
        for stream in list(self._streams):
            stream.end()

    def _readers(self, event: Event) -> list[Stream]:
        is_of_jobs = event.seq is not None or event.name == "jobs.changed"
        watching = self._by_watch.get(EVERY_JOB if is_of_jobs else CONTROL, set())
        if event.seq is not None:
            watching = watching | self._by_watch.get(event.seq, set())
        return [s for s in watching if s.is_live and s.wants(event)]

    def _is_wanted(self, event: Event) -> bool:
        return bool(self._readers(event))

    def _deliver(self, found: VisibleEvent) -> None:
        # By kind of stream, and by whether the reader may see private messages.
        written: dict[tuple[bool, bool], bytes] = {}
        for stream in self._readers(found.event):
            of_job = isinstance(stream, JobStream)
            debug = not found.rendering.is_same_for_all and stream.shows_debug(found.event)
            if (of_job, debug) not in written:
                frame = found.job_frame if of_job else found.topic_frame
                written[of_job, debug] = frame(debug=debug)
            stream.offer(found.event, written[of_job, debug])

    def _end_deleted(self, event: Event) -> None:
        for stream in self._readers(event):
            if isinstance(stream, JobStream):
                stream.end()

    async def _listen(self) -> None:
        """Receive notifications of other processes, where LISTEN works."""
        if not self._settings.can_listen:
            return
        dsn = await asyncio.to_thread(lambda: self._database.dsn)
        self._listener = Listener(
            dsn, self._settings, lambda _: self._notified.trigger(), channel=events.CHANNEL
        )
        while True:
            try:
                await self._listener.listen(self._changed.set)
            except LanewayError as error:
                log.warning("LISTEN failed, streams poll instead: %s", error)
            except Exception:
                log.exception("LISTEN failed, streams poll instead")
            await asyncio.sleep(RETRY_S)

    async def _maintain(self) -> None:
        """End streams whose access was revoked, and extend the watches of the others."""
        kept_at = time.monotonic()
        while True:
            await asyncio.sleep(REVIEW_S)
            try:
                await self.review()
                if time.monotonic() - kept_at > self._settings.event_retention / 3:
                    await self.renew_watches()
                    kept_at = time.monotonic()
            except LanewayError as error:
                log.warning("access of streams could not be checked: %s", error)
            except Exception:
                # Keep going: later revocations must still end streams.
                log.exception("access of streams could not be checked")

    async def review(self) -> None:
        """Check the access of all streams with one query, and end revoked ones."""
        digests = {s.digest for s in self._streams if s.digest is not None}
        if not digests:
            return
        found = await self._review(digests)
        for stream in list(self._streams):
            if stream.digest in digests:
                access = found.get(stream.digest)
                if access is None:
                    stream.end()
                else:
                    stream.admit(access)

    async def renew_watches(self) -> None:
        """Extend all watches; streams whose watch was lost end, so that clients reconnect."""
        watched = set(self._by_watch)
        if not watched:
            return
        kept = await self._database.run(events.renew_watches(watched, self._keep_s))
        lost = watched - kept
        for stream in list(self._streams):
            if stream.watched & lost:
                stream.end()


def _set_in(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    """Set an event from any thread; a closed loop is ignored."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(event.set)
