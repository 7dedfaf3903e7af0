"""The progress of a freeze, and the result of a thaw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar
from uuid import UUID

from laneway.domain.annotations import HIDDEN, Doc


@dataclass(frozen=True, slots=True)
class Thawed:
    """A lane that is no longer frozen."""

    lane: str
    was_enabled: Annotated[bool, Doc("Before it was frozen")]
    enabled: bool


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job that still runs in a draining lane."""

    id: UUID
    job_type: str
    attempt: int
    worker: str
    held_s: float


@dataclass(frozen=True, slots=True)
class LaneWatch:
    """The jobs that still run in a lane."""

    lane: str
    running: int
    jobs: Annotated[tuple[HeldJob, ...], Doc("Some of them, longest first")]
    # Every lane in a freeze is drained.
    enabled: Annotated[bool, HIDDEN] = False


@dataclass(frozen=True, slots=True)
class Freeze:
    """The outcome of a freeze."""

    computed: ClassVar = ("is_quiet", "running")

    lanes: tuple[LaneWatch, ...]
    waited_s: float
    is_thawed: Annotated[bool, Doc("It thawed the lanes that it had drained")] = False
    left_frozen: Annotated[
        tuple[str, ...], Doc("Lanes that `or_thaw` left as they were: another freeze holds them")
    ] = ()

    @property
    def running(self) -> int:
        return sum(each.running for each in self.lanes)

    @property
    def is_quiet(
        self,
    ) -> Annotated[bool, Doc("No job runs in the lanes, and none starts until thawed")]:
        return not self.running and not self.is_thawed
