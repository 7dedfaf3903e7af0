"""Counters of this process since it started.

Workers and servers add to them; metrics.py exports them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import Final, Protocol
from uuid import UUID
from weakref import WeakSet

OTHER: Final = "other"
# Further names are counted together as OTHER, so that a label never grows without bound.
MAX_LANES: Final = 50
MAX_JOB_TYPES: Final = 100
MAX_ROUTES: Final = 200

RUN_BOUNDS: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0,
    3600.0,
)  # fmt: skip
WAIT_BOUNDS: Final = RUN_BOUNDS
REQUEST_BOUNDS: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Pool(Protocol):
    """The exported attributes of a pool of database connections."""

    role: str
    size: int
    is_closed: bool

    @property
    def idle(self) -> int: ...
    @property
    def in_use(self) -> int: ...
    @property
    def waiting(self) -> int: ...


class Histogram:
    """Counts of values up to each bound; the last count is of those above all bounds."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Names:
    """Keeps the first `most` names and maps later ones to `other`."""

    __slots__ = ("_known", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def fold(self, name: str) -> str:
        if name in self._known:
            return name
        if len(self._known) < self._most:
            self._known.add(name)
            return name
        return OTHER


class OutcomeCounter:
    """The outcomes and durations of the attempts of one job type in one lane."""

    __slots__ = ("_durations", "outcomes")

    def __init__(self, durations: Histogram) -> None:
        self.outcomes: dict[str, int] = {}
        self._durations = durations

    def add(self, outcome: str, ran_s: float | None) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        if ran_s is not None:
            self._durations.add(ran_s)


class Counters:
    """Written by the event loop and read by any thread: readers copy each value in one step."""

    def __init__(self) -> None:
        self._lanes = Names(MAX_LANES)
        self._job_types = Names(MAX_JOB_TYPES)
        self._routes = Names(MAX_ROUTES)
        self._ends: dict[tuple[str, str], OutcomeCounter] = {}
        self.claims: Counter[str] = Counter()
        self.fenced: Counter[str] = Counter()
        self.lapses = 0
        self.durations: dict[str, Histogram] = {}
        self.waits: dict[str, Histogram] = {}
        self.requests: Counter[tuple[str, ...]] = Counter()
        self.request_times: dict[tuple[str, ...], Histogram] = {}
        # gRPC calls by method and status, their durations, and open streams.
        self.calls: Counter[tuple[str, ...]] = Counter()
        self.call_times: dict[str, Histogram] = {}
        self.call_streams: Counter[str] = Counter()
        self.assignments_sent = 0
        # The epochs of the workers of this process that lead.
        self.epochs: dict[UUID, int] = {}
        self.pools: WeakSet[Pool] = WeakSet()
        # Measuring waits makes claims a little slower, so it begins with the first reader.
        self.is_read = False

    def claimed(self, lane: str, count: int) -> None:
        self.claims[self._lanes.fold(lane)] += count

    def waited(self, lane: str, seconds: float) -> None:
        lane = self._lanes.fold(lane)
        if lane not in self.waits:
            self.waits[lane] = Histogram(WAIT_BOUNDS)
        self.waits[lane].add(seconds)

    def ends(self, lane: str, job_type: str) -> OutcomeCounter:
        """The counter for the ends of such attempts; every claimed attempt must be added once."""
        key = self._lanes.fold(lane), self._job_types.fold(job_type)
        if key not in self._ends:
            durations = self.durations.setdefault(key[1], Histogram(RUN_BOUNDS))
            self._ends[key] = OutcomeCounter(durations)
        return self._ends[key]

    @property
    def outcomes(self) -> dict[tuple[str, ...], int]:
        """Ends by lane, job type and outcome."""
        return {
            (*key, outcome): count
            for key, ends in self._ends.copy().items()
            for outcome, count in ends.outcomes.copy().items()
        }

    @property
    def running(self) -> dict[str, int]:
        """Attempts that were claimed and have not ended, by lane."""
        left = self.claims.copy()
        for labels, count in self.outcomes.items():
            left[labels[0]] -= count
        return dict(left)

    def answered(self, method: str, route: str, status: int, took_s: float) -> None:
        """Counts a request, by the template of its route."""
        if method not in _METHODS:
            method = OTHER
        route = self._routes.fold(route)
        self.requests[method, route, f"{status // 100}xx"] += 1
        if (method, route) not in self.request_times:
            self.request_times[method, route] = Histogram(REQUEST_BOUNDS)
        self.request_times[method, route].add(took_s)

    def called(self, method: str, status: str, took_s: float | None) -> None:
        """Counts a gRPC call; streams have no duration (None)."""
        self.calls[method, status] += 1
        if took_s is None:
            return
        if method not in self.call_times:
            self.call_times[method] = Histogram(REQUEST_BOUNDS)
        self.call_times[method].add(took_s)

    def leads(self, holder: UUID, epoch: int | None) -> None:
        """Records the epoch in which a worker of this process leads; None: it does not lead."""
        if epoch is None:
            self.epochs.pop(holder, None)
        else:
            self.epochs[holder] = epoch


# Prometheus scrapes processes, not workers: all workers and servers of one process share these.
PROCESS: Final = Counters()
