"""The progress of a freeze, and the result of a thaw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID


class Thawed(NamedTuple):
    """A lane that is no longer frozen: its state before the freeze, and now."""

    lane: str
    was_enabled: bool
    enabled: bool


class HeldJob(NamedTuple):
    """A job that still runs in a draining lane."""

    id: UUID
    job_type: str
    attempt: int
    worker: str
    held_s: float


class LaneWatch(NamedTuple):
    """The jobs that run in a lane: their number, and some of them, longest first."""

    lane: str
    enabled: bool
    running: int
    jobs: tuple[HeldJob, ...]


@dataclass(frozen=True, slots=True)
class Freeze:
    """The progress of a freeze: what still runs in each lane, and whether it was undone."""

    lanes: tuple[LaneWatch, ...]
    waited_s: float
    is_thawed: bool = False

    @property
    def running(self) -> int:
        return sum(each.running for each in self.lanes)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing runs in the lanes, and nothing starts until they are thawed."""
        return not self.running and not self.is_thawed

    def to_dict(self) -> dict[str, object]:
        return {
            "is_quiet": self.is_quiet,
            "is_thawed": self.is_thawed,
            "running": self.running,
            "waited_s": round(self.waited_s, 3),
            "lanes": [_watch_to_dict(each) for each in self.lanes],
        }


def _watch_to_dict(seen: LaneWatch) -> dict[str, object]:
    return {
        "lane": seen.lane,
        "running": seen.running,
        "jobs": [
            {
                "id": str(job.id),
                "job_type": job.job_type,
                "attempt": job.attempt,
                "worker": job.worker,
                "held_s": round(job.held_s, 3),
            }
            for job in seen.jobs
        ],
    }
