"""The resources that all remote streams of a server share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from laneway.engine.lease.completer import Completer
from laneway.engine.process.throttled_warnings import ThrottledWarnings
from laneway.engine.process.worker_metrics import WorkerMetrics
from laneway.rpc.server.assignments import Assignments
from laneway.rpc.server.round_robin import RoundRobin
from laneway.rpc.server.stream_loop import LaneFloors
from laneway.store.database import Database
from laneway.store.lanes import ControlState


class RemoteMetrics(WorkerMetrics):
    """The counters of a server; assignments always carry the trace of their submit."""

    @property
    def wants_origins(self) -> bool:
        return True


@dataclass(slots=True, kw_only=True)
class DispatchResources:
    """Connections, queues and callbacks that every dispatcher uses."""

    claims: Database
    rest: Database
    completer: Completer
    counting: WorkerMetrics
    complaints: ThrottledWarnings
    assignments: Assignments
    rotation: RoundRobin
    state: Callable[[], ControlState]
    refresh: Callable[[], Awaitable[None]]
    tell_others: Callable[[set[str]], None]
    max_bytes: int
    # One claim at a time, made when its turn has come: room may have been given back meanwhile.
    claiming: asyncio.Lock = field(default_factory=asyncio.Lock)
    floors: dict[str, LaneFloors] = field(default_factory=dict)
