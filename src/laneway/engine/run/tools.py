"""The parts of a worker that running attempts share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Protocol

from laneway.config.settings import Settings
from laneway.domain.claim import Claim
from laneway.engine.child.process_pool import ProcessPool
from laneway.engine.claim.capacity import Capacity
from laneway.engine.lease.completer import Completer
from laneway.engine.process.loop_marker import LoopMarker
from laneway.engine.registry import Handler, Registry
from laneway.engine.run.attempt import Run
from laneway.engine.run.handler_requests import HandlerRequests


class RunEvents(Protocol):
    """A worker, as its executor informs it."""

    def on_room(self) -> None:
        """A handler has returned and left room for another job."""
        ...

    def on_void(self, claim: Claim) -> None:
        """An attempt has ended that was fenced before."""
        ...

    def on_abandoned(self, run: Run) -> None:
        """A job has ended although its handler still runs."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTools:
    """Shared by all attempts of one worker."""

    # The worker's name, for log lines and traces.
    name: str
    settings: Settings
    registry: Registry
    # Laneway's own handlers by job type.
    internal: Mapping[str, Handler]
    resources: SimpleNamespace
    capacity: Capacity
    requests: HandlerRequests
    completer: Completer
    pool: ProcessPool
    marker: LoopMarker | None
    events: RunEvents

    def handler_of(self, job_type: str) -> Handler:
        return self.internal.get(job_type) or self.registry[job_type]
