"""The resources that all remote streams of a server share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from laneway.engine.lease.completer import Completer
from laneway.engine.process.worker_metrics import WorkerMetrics
from laneway.observability.log_throttle import LogThrottle
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
    metrics: WorkerMetrics
    warnings: LogThrottle
    assignments: Assignments
    round_robin: RoundRobin
    state: Callable[[], ControlState]
    refresh: Callable[[], Awaitable[None]]
    wake_peers: Callable[[set[str]], None]
    max_bytes: int
    # One claim at a time, which reads the room only when it runs: more may be free by then.
    claiming: asyncio.Lock = field(default_factory=asyncio.Lock)
    floors: dict[str, LaneFloors] = field(default_factory=dict)
