"""Freezing and thawing lanes, as statements."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from laneway.domain.freeze import HeldJob, LaneWatch, Thawed
from laneway.store.statement import Row, Statement, rows_of, scalar


def freeze(lanes: Sequence[str] | None, by: str) -> Statement[list[str]]:
    """Drains lanes (None: all enabled ones) and stores their state; returns their names."""
    return Statement("freeze/freeze_lanes", scalar, {"lanes": _names(lanes), "by": by})


def thaw(lanes: Sequence[str] | None, by: str) -> Statement[list[Thawed]]:
    """Restores the state of frozen lanes (None: all)."""
    return Statement("freeze/thaw_lanes", rows_of(Thawed), {"lanes": _names(lanes), "by": by})


class FrozenLane(NamedTuple):
    """The stored state of a frozen lane."""

    lane: str
    was_enabled: bool
    frozen_at: datetime
    frozen_by: str


def frozen() -> Statement[list[FrozenLane]]:
    return Statement("freeze/read_frozen", rows_of(FrozenLane))


def progress(lanes: Sequence[str], most: int) -> Statement[list[LaneWatch]]:
    """The lanes by name, each with up to `most` of its running jobs."""

    def decode(rows: list[Row]) -> list[LaneWatch]:
        return [
            LaneWatch(
                name,
                running,
                tuple(_held(r[3:]) for r in held if r[3] is not None),
                enabled,
            )
            for (name, enabled, running), held in groupby(rows, key=lambda r: tuple(r[:3]))
        ]

    return Statement("freeze/read_progress", decode, {"lanes": list(lanes), "most": most})


def _held(row: Row) -> HeldJob:
    job_id, job_type, attempt, worker, held_s = row
    return HeldJob(job_id, job_type, attempt, worker, round(held_s, 3))


def _names(lanes: Sequence[str] | None) -> list[str] | None:
    return list(lanes) if lanes is not None else None
