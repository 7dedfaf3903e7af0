"""One open stream: the events it wants, and its unsent frames."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from typing import Final

from laneway.domain.event import CONTROL, EVERY_JOB, Event, Topic
from laneway.domain.permissions import Access, Reach
from laneway.observability.safe_logger import SafeLogger

log = SafeLogger(__name__)

# Frames that a reader may leave unread. Readers of the same event share its bytes.
MAX_FRAMES: Final = 512
MAX_BYTES: Final = 4 * 1024 * 1024
# Bytes per send: each reader has its own copy of them.
AT_ONCE: Final = 32 * 1024
READ: Final = "jobs:read"
DEBUG: Final = "jobs:debug"
# Events that change the counts of a flow, besides ends.
_COUNTED: Final = frozenset({"job.submitted", "job.retried"})


class Stream:
    """The frames for one reader, and the reader's access."""

    # The numbers of the jobs whose changes must be logged for it.
    watched: frozenset[int] = frozenset()

    def __init__(self, access: Access, digest: bytes | None) -> None:
        self.digest = digest
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._is_readable = asyncio.Event()
        self.is_ended = self._is_dropped = False
        # Events are delivered only while this is set: after joining, until the end.
        self.is_live = False
        self._on_drop: Callable[[], object] | None = None
        self.admit(access)

    def admit(self, access: Access) -> None:
        """Set the reader's access; end the stream if it may read no jobs."""
        self.access = access
        self.reach = access.reach(READ)
        self._debug = access.reach(DEBUG)
        if self.reach.is_empty:
            self.end()

    def put(self, frame: bytes) -> None:
        """Queue a frame. A reader with too many unread frames is dropped, and can resume."""
        if self.is_ended:
            return
        self._frames.append(frame)
        self._size += len(frame)
        self._is_readable.set()
        # A single frame may exceed the bytes, as long as it is read.
        if len(self._frames) > MAX_FRAMES or (self._size > MAX_BYTES and len(self._frames) > 1):
            self.drop()

    def end(self) -> None:
        """End after the queued frames are sent."""
        self.is_ended, self.is_live = True, False
        self._is_readable.set()

    def drop(self) -> None:
        """End immediately, even during a send that the reader blocks."""
        log.info("dropped a stream whose client does not read")
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
        """The next bytes to send; empty after the timeout, None at the end."""
        if not self._frames and not self.is_ended:
            try:
                async with asyncio.timeout(patience_s):
                    await self._is_readable.wait()
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
            self._is_readable.clear()
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def wants(self, event: Event) -> bool:
        raise NotImplementedError

    def shows_debug(self, event: Event) -> bool:
        """Whether the reader may see private error messages of this event's job."""
        return event.created_by == self.access.name or covers(self._debug, event)

    def offer(self, event: Event, frame: bytes) -> None:
        """Deliver an event that the stream wants."""
        self.put(frame)


class JobStream(Stream):
    """The changes of one job, until it ends."""

    def __init__(self, access: Access, digest: bytes | None, seq: int) -> None:
        super().__init__(access, digest)
        self.seq = seq
        self.watched = frozenset({seq})
        self.last_id = 0
        # The id of the log that its numbers belong to.
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
    """The changes of some topics that the reader may see."""

    def __init__(
        self, access: Access, digest: bytes | None, topics: Collection[Topic], seqs: Collection[int]
    ) -> None:
        self.topics = tuple(topics)
        self.seqs = frozenset(seqs)
        super().__init__(access, digest)
        broad = {EVERY_JOB} if any(t.kind not in ("job", "lanes") for t in topics) else set()
        control = {CONTROL} if self.wants_control else set()
        self.watched = self.seqs | broad | control

    @property
    def wants_control(self) -> bool:
        return Topic("lanes") in self.topics

    def wants(self, event: Event) -> bool:
        if event.seq is not None or event.name == "jobs.changed":
            is_wanted = event.seq in self.seqs or any(topic.matches(event) for topic in self.topics)
            return is_wanted and (event.workspace is None or covers(self.reach, event))
        return self.wants_control and sees_control(self.access, event)


class FlowStream(TopicStream):
    """The changes of the jobs of one flow. `is_changed`: jobs were added or have ended."""

    def __init__(self, access: Access, digest: bytes | None, topic: Topic) -> None:
        super().__init__(access, digest, [topic], ())
        self.is_changed = False

    def offer(self, event: Event, frame: bytes) -> None:
        if event.seq is None or event.is_terminal or event.name in _COUNTED:
            self.is_changed = True
        super().offer(event, frame)


def covers(reach: Reach, event: Event) -> bool:
    return reach.covers(owner=event.created_by, workspace=event.workspace, lane=event.lane)


def sees_control(access: Access, event: Event) -> bool:
    """Whether the caller may see a change of the control plane, by the rules of the routes."""
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
    """Check both states: before the change it may have had another workspace or lane."""
    states = (event.state.get("before"), event.state.get("after"))
    return all(
        reach.covers(
            owner=None,
            workspace=state["workspace"],
            lane=event.lane if state["job_type"] == event.job_type else None,
        )
        for state in states
        if state is not None
    )
