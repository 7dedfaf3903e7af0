"""The open streams of a replica, and the one reader of the log that serves them all."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Final

from laneway.config.settings import Settings
from laneway.domain.event import CONTROL, EVERY_JOB, Cursor, Event, LogPosition
from laneway.domain.permissions import Access
from laneway.errors import LanewayError, RateLimited
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

log = logging.getLogger(__name__)

Review = Callable[[Collection[bytes]], Awaitable[dict[bytes, Access]]]

# With LISTEN, a look now and then all the same: notifications are an accelerator.
SAFETY_S: Final = 5.0
# A revoked token's streams end within five seconds: this, and what is known of it for two.
REVIEW_S: Final = 2.0
RETRY_S: Final = 1.0
# Between two looks, however much goes on.
SOONEST_S: Final = 0.01
# From the first word of what others changed to the look. A job that is submitted is claimed right
# after: one look for both, and the processor is left to those who start it.
GATHER_S: Final = 0.02
# After the last stream has gone; the next one may be near.
LINGER_S: Final = 10.0
# When the server stops: who has not read what there is by then is let go without it.
LAST_WORDS_S: Final = 2.0


class Hub:
    """Asks the database for news once for all streams; without streams it asks for nothing."""

    def __init__(self, database: Database, settings: Settings, review: Review) -> None:
        self._database = database
        self._settings = settings
        self._review = review
        # A watch outlives its last stream, so that one can be resumed elsewhere.
        self._keep_s = 1.5 * settings.event_retention
        self._streams: set[Stream] = set()
        # By what they watch, so that an event costs those who want it.
        self._by_watch: defaultdict[int, set[Stream]] = defaultdict(set)
        self._taken: Counter[bytes | None] = Counter()
        self._unsettled: set[int] = set()
        self._tail = EventReader(database)
        # Held while the log is read and while a stream joins: nothing falls between.
        self._reading = asyncio.Lock()
        self._news = asyncio.Event()
        self._heard = Debounce(GATHER_S, self._news.set)
        self._listener: Listener | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._resting: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def is_listening(self) -> bool:
        """Whether changes by other processes are heard of at once; never without streams."""
        return self._listener is not None and self._listener.is_listening

    @property
    def open_streams(self) -> int:
        return len(self._streams)

    def wake(self) -> None:
        """Something was changed: look now. Costs nothing without streams."""
        self._news.set()

    # -- streams come and go ------------------------------------------------------------------

    def enter(self, stream: Stream) -> None:
        """Counts a stream in, or refuses it; whoever was let in must leave."""
        if self._is_closed:
            raise RateLimited("this server is about to stop: try another one")
        if len(self._streams) >= self._settings.max_streams:
            most = f"at most {self._settings.max_streams} (max_streams)"
            raise RateLimited(f"too many streams at this server, {most}: try another one", 5.0)
        if self._taken[stream.digest] >= self._settings.max_streams_per_token:
            most = f"at most {self._settings.max_streams_per_token} (max_streams_per_token)"
            raise RateLimited(f"too many streams with this token or session, {most}", 5.0)
        self._streams.add(stream)
        for seq in stream.watched:
            self._by_watch[seq].add(stream)
        self._taken[stream.digest] += 1
        if not self._tasks:
            loop = asyncio.get_running_loop()
            local_notify.subscribe(self, lambda: _set_in(loop, self._news))
            loops = (self._follow, self._listen, self._look_after)
            self._tasks = [
                # In a context of its own: it outlives the request that happened to be the first.
                asyncio.create_task(
                    each(), name=f"laneway hub {each.__name__}", context=contextvars.Context()
                )
                for each in loops
            ]

    def leave(self, stream: Stream) -> None:
        if stream in self._streams:
            self._streams.discard(stream)
            self._taken -= Counter({stream.digest: 1})
            for seq in stream.watched:
                self._by_watch[seq].discard(stream)
                if not self._by_watch[seq]:
                    del self._by_watch[seq]

    async def join_job(
        self, stream: JobStream, last: LogPosition | None
    ) -> deque[Rendering] | None:
        """Begins to deliver. Answers what is told first: where the job stands, or all that came
        after the event the reader had last. None: that was the job's end."""
        await self._begin()
        await self._watch(stream.watched)
        async with self._reading:
            found, renderings = await read_log(self._database, stream.seq, last)
            stream.log = found.log
            if found.log != self._tail.log:
                self._replaced()
            # Perhaps its watch, or even the number of its job, is of a log that is gone.
            is_lost = stream.is_ended
            if is_lost:
                return deque()
            if found.is_over:
                return None
            told: deque[Rendering] = deque()
            for each in renderings:
                if not stream.is_ended and stream.wants(each.event):
                    told.append(each)
                    stream.last_id = each.event.id
                    if each.event.is_terminal:
                        stream.end()
            if last is not None and found.is_known and not found.events:
                stream.last_id = last.id
            elif not told:
                # It was deleted meanwhile, or is out of reach.
                stream.end()
            stream.is_live = not stream.is_ended
            return told

    async def join_topics(self, stream: TopicStream, since: Cursor | None) -> tuple[bool, Cursor]:
        """Begins to deliver. Answers whether nothing is missing in the log since then, and from
        where on all is delivered; what lies between is told by `missed`."""
        await self._begin()
        can_resume = since is not None and await self._database.run(
            events.can_resume(stream.watched, str(since.prev), since.log)
        )
        await self._watch(stream.watched)
        async with self._reading:
            # Beyond what any other replica has told the reader before.
            await self._advance()
            if not self._tail.is_begun:
                await self._tail.begin()
            stream.is_live = not stream.is_ended
            here = self._tail.here
            return can_resume, Cursor(here, here, 0, self._tail.log)

    def missed(self, stream: TopicStream, since: Cursor, here: Cursor) -> AsyncIterator[bytes]:
        return between(self._database, since, here.next, stream.wants, stream.shows_debug)

    async def _begin(self) -> None:
        """Before a watch is opened: if the database is replaced after that, it is noticed."""
        async with self._reading:
            if not self._tail.is_begun:
                await self._tail.begin()

    async def _watch(self, seqs: Collection[int]) -> None:
        """From now on every change of these is logged, whoever makes it."""
        unsettled = await self._database.run(events.open_watches(seqs, self._keep_s))
        if unsettled:
            self._unsettled |= unsettled
            settled = await self._database.run(events.reconcile(unsettled))
            self._unsettled -= settled

    def end_streams(self) -> None:
        """Lets every reader go, to resume elsewhere; none is let in any more."""
        self._is_closed = True
        for stream in list(self._streams):
            stream.end()
        if self._streams:
            asyncio.get_running_loop().call_later(LAST_WORDS_S, self._drop_all)

    def _drop_all(self) -> None:
        for stream in list(self._streams):
            stream.drop()

    async def close(self) -> None:
        self.end_streams()
        self._rest()
        if self._resting:
            await asyncio.wait(self._resting)

    # -- what goes on while there are streams ---------------------------------------------------

    async def _follow(self) -> None:
        """Reads the log when there is news, and at intervals."""
        quiet_since = looked_at = time.monotonic()
        is_failing = False
        while True:
            await self._pause()
            await asyncio.sleep(max(0.0, looked_at + SOONEST_S - time.monotonic()))
            looked_at = time.monotonic()
            if self._streams:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > LINGER_S:
                self._rest()
                return
            try:
                await self._settle()
                async with self._reading:
                    await self._advance()
                is_failing = False
            except LanewayError as error:
                if not is_failing:
                    log.warning("streams wait for the database: %s", error)
                is_failing = True
                await asyncio.sleep(RETRY_S)
            except Exception:
                # Whoever reads must not wait for ever: he begins anew.
                log.exception("the log of changes cannot be told")
                self._tail.forget()
                for stream in list(self._streams):
                    stream.end()

    async def _pause(self) -> None:
        # Of what many jobs do at once not every change is notified.
        is_watching_much = EVERY_JOB in self._by_watch
        is_slow = self.is_listening and not is_watching_much and not self._unsettled
        try:
            async with asyncio.timeout(
                SAFETY_S if is_slow else self._settings.event_poll_ms / 1000
            ):
                await self._news.wait()
        except TimeoutError:
            pass
        self._news.clear()

    def _rest(self) -> None:
        """Nobody is there: the next stream begins anew."""
        for task in self._tasks:
            self._resting.add(task)
            task.add_done_callback(self._resting.discard)
            if task is not asyncio.current_task():
                task.cancel()
        self._tasks = []
        self._heard.cancel()
        self._tail.forget()
        local_notify.unsubscribe(self)

    async def _settle(self) -> None:
        """Finds out what was changed by who did not see that a watch had begun."""
        self._unsettled &= self._by_watch.keys()
        if self._unsettled:
            settled = await self._database.run(events.reconcile(self._unsettled))
            self._unsettled -= settled

    async def _advance(self) -> None:
        if self._streams:
            try:
                await self._tail.advance(self._is_wanted, self._tell, self._end_of_deleted)
            except LogReplaced:
                self._replaced()

    def _replaced(self) -> None:
        """Ends every stream: neither its watch nor its place is in the log that is there now."""
        log.warning("the database was restored: streams end, and begin again at what is there now")
        self._tail.forget()
        self._unsettled.clear()
        for stream in list(self._streams):
            stream.end()

    def _readers(self, event: Event) -> list[Stream]:
        is_of_jobs = event.seq is not None or event.name == "jobs.changed"
        likely = self._by_watch.get(EVERY_JOB if is_of_jobs else CONTROL, set())
        if event.seq is not None:
            likely = likely | self._by_watch.get(event.seq, set())
        return [s for s in likely if s.is_live and s.wants(event)]

    def _is_wanted(self, event: Event) -> bool:
        return bool(self._readers(event))

    def _tell(self, found: VisibleEvent) -> None:
        # By kind of stream, and by whether it shows private messages.
        written: dict[tuple[bool, bool], bytes] = {}
        for stream in self._readers(found.event):
            of_job = isinstance(stream, JobStream)
            debug = not found.rendering.is_alike and stream.shows_debug(found.event)
            if (of_job, debug) not in written:
                frame = found.numbered if of_job else found.placed
                written[of_job, debug] = frame(debug=debug)
            stream.offer(found.event, written[of_job, debug])

    def _end_of_deleted(self, event: Event) -> None:
        for stream in self._readers(event):
            if isinstance(stream, JobStream):
                stream.end()

    async def _listen(self) -> None:
        """Hears of changes by other processes, where LISTEN reaches us."""
        if not self._settings.can_listen:
            return
        dsn = await asyncio.to_thread(lambda: self._database.dsn)
        self._listener = Listener(
            dsn, self._settings, lambda _: self._heard.trigger(), channel=events.CHANNEL
        )
        while True:
            try:
                await self._listener.listen(self._news.set)
            except LanewayError as error:
                log.warning("streams poll, changes cannot be listened for: %s", error)
            except Exception:
                log.exception("streams poll, changes cannot be listened for")
            await asyncio.sleep(RETRY_S)

    async def _look_after(self) -> None:
        """Ends streams of those who lost their power, and prolongs the watches of the others."""
        kept_at = time.monotonic()
        while True:
            await asyncio.sleep(REVIEW_S)
            try:
                await self.review()
                if time.monotonic() - kept_at > self._settings.event_retention / 3:
                    await self.keep_watches()
                    kept_at = time.monotonic()
            except LanewayError as error:
                log.warning("streams cannot be looked after: %s", error)
            except Exception:
                # Whatever it is, the next who loses his power must be let go.
                log.exception("streams cannot be looked after")

    async def review(self) -> None:
        """Asks for all streams at once who may still read."""
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

    async def keep_watches(self) -> None:
        """Prolongs what is watched; who relied on a watch that was lost must begin anew."""
        watched = set(self._by_watch)
        if not watched:
            return
        kept = await self._database.run(events.keep_watches(watched, self._keep_s))
        lost = watched - kept
        for stream in list(self._streams):
            if stream.watched & lost:
                stream.end()


def _set_in(loop: asyncio.AbstractEventLoop, news: asyncio.Event) -> None:
    """From any thread; a loop that has ended needs no news."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(news.set)
