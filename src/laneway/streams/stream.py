"""One open stream: what it wants to hear, and what it has still to send."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from typing import Final

from laneway.domain.event import CONTROL, EVERY_JOB, Event, Topic
from laneway.domain.permissions import Access, Reach

log = logging.getLogger(__name__)

# What a reader may leave unread; bytes are shared by all who get the same event.
MOST_FRAMES: Final = 512
MOST_BYTES: Final = 4 * 1024 * 1024
# What is on its way to one reader is a copy of his own.
AT_ONCE: Final = 32 * 1024
READ: Final = "jobs:read"
DEBUG: Final = "jobs:debug"


class Stream:
    """Frames on their way to one reader, and whether he may still have them."""

    # The numbers of jobs whose changes are logged for it.
    watched: frozenset[int] = frozenset()

    def __init__(self, access: Access, digest: bytes | None) -> None:
        self.digest = digest
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self.is_ended = self._is_dropped = False
        # Whether it has joined: before, and after its end, nothing is delivered.
        self.is_live = False
        self._on_drop: Callable[[], object] | None = None
        self.admit(access)

    def admit(self, access: Access) -> None:
        """Takes over what the reader may do from now on."""
        self.access = access
        self.reach = access.reach(READ)
        self._debug = access.reach(DEBUG)
        if self.reach.is_empty:
            self.end()

    def put(self, frame: bytes) -> None:
        """Keeps a frame until it is sent; who leaves too many unread is dropped, and can resume."""
        if self.is_ended:
            return
        self._frames.append(frame)
        self._size += len(frame)
        self._news.set()
        # One frame may be as large as it likes, if it is read.
        if len(self._frames) > MOST_FRAMES or (self._size > MOST_BYTES and len(self._frames) > 1):
            self.drop()

    def end(self) -> None:
        """Sends what there is, then no more."""
        self.is_ended, self.is_live = True, False
        self._news.set()

    def drop(self) -> None:
        """Ends at once, also where the reader keeps a send from coming back."""
        log.info("a reader who does not read was dropped")
        self._frames.clear()
        self._is_dropped = True
        self.end()
        if self._on_drop is not None:
            self._on_drop()

    def on_drop(self, call: Callable[[], object]) -> None:
        self._on_drop = call
        if self._is_dropped:
            call()

    async def take(self, patience_s: float) -> bytes | None:
        """What is to be sent next; nothing after the time given; None at the end."""
        if not self._frames and not self.is_ended:
            try:
                async with asyncio.timeout(patience_s):
                    await self._news.wait()
            except TimeoutError:
                return b""
        if not self._frames:
            return None if self.is_ended else b""
        taken = [self._frames.popleft()]
        size = len(taken[0])
        while self._frames and size + len(self._frames[0]) <= AT_ONCE:
            taken.append(self._frames.popleft())
            size += len(taken[-1])
        self._size -= size
        if not self._frames and not self.is_ended:
            self._news.clear()
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def wants(self, event: Event) -> bool:
        raise NotImplementedError

    def shows_debug(self, event: Event) -> bool:
        """Whether the message of an error that is not public is for this reader."""
        return event.created_by == self.access.name or covers(self._debug, event)

    def offer(self, event: Event, frame: bytes) -> None:
        """Gives it an event that it wants."""
        self.put(frame)


class JobStream(Stream):
    """The changes of one job, to its end."""

    def __init__(self, access: Access, digest: bytes | None, seq: int) -> None:
        super().__init__(access, digest)
        self.seq = seq
        self.watched = frozenset({seq})
        self.last_id = 0
        # Which log its numbers are of.
        self.log: str | None = None

    def wants(self, event: Event) -> bool:
        if event.seq != self.seq or event.id <= self.last_id:
            return False
        if not covers(self.reach, event):
            self.end()
            return False
        return True

    def offer(self, event: Event, frame: bytes) -> None:
        self.last_id = event.id
        self.put(frame)
        if event.is_terminal:
            self.end()


class TopicStream(Stream):
    """The changes of all that some topics are about and the reader may see."""

    def __init__(
        self, access: Access, digest: bytes | None, topics: Collection[Topic], seqs: Collection[int]
    ) -> None:
        self.topics = tuple(topics)
        self.seqs = frozenset(seqs)
        super().__init__(access, digest)
        broad = {EVERY_JOB} if any(t.kind not in ("job", "lanes") for t in topics) else set()
        control = {CONTROL} if self.hears_control else set()
        self.watched = self.seqs | broad | control

    @property
    def hears_control(self) -> bool:
        return Topic("lanes") in self.topics

    def wants(self, event: Event) -> bool:
        if event.seq is not None or event.name == "jobs.changed":
            is_meant = event.seq in self.seqs or any(topic.has(event) for topic in self.topics)
            return is_meant and (event.workspace is None or covers(self.reach, event))
        return self.hears_control and sees_control(self.access, event)


def covers(reach: Reach, event: Event) -> bool:
    return reach.covers(owner=event.created_by, workspace=event.workspace, lane=event.lane)


def sees_control(access: Access, event: Event) -> bool:
    """Whether a change of the control plane is for these eyes, as the routes would tell it."""
    lanes = access.reach("workers:view").lanes
    match event.name:
        case "schedule.changed":
            return _covers_schedule(access.reach("schedules:view"), event)
        case "lane.changed":
            return lanes is None or event.lane in lanes
        case "limit.changed":
            return lanes is None
        case _:
            return lanes is None or bool(lanes)


def _covers_schedule(reach: Reach, event: Event) -> bool:
    """Also what it was before: it may have belonged to another workspace, or to another lane."""
    told = (event.state.get("before"), event.state.get("after"))
    return all(
        reach.covers(
            owner=None,
            workspace=one["workspace"],
            lane=event.lane if one["job_type"] == event.job_type else None,
        )
        for one in told
        if one is not None
    )
