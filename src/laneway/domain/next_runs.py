"""The next slots of a schedule, with notes on clock changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from cronsim import CronSim

from laneway.domain.annotations import Doc
from laneway.domain.cron import Timing, is_fixed, next_slot, slots_after

FIRES: Final = 3
_TICK: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Fire:
    """An upcoming slot."""

    at: datetime
    note: Annotated[
        str | None, Doc("The effect of a clock change: moved, skipped before, or twice")
    ]


@lru_cache(maxsize=4096)
def fire_at(timing: Timing, slot: datetime) -> Fire:
    """The slot with its note."""
    return Fire(slot.astimezone(UTC), _note(timing, slot))


@lru_cache(maxsize=4096)
def fires_after(timing: Timing, moment: datetime, count: int = FIRES) -> tuple[Fire, ...]:
    """The next slots later than the moment."""
    return tuple(fire_at(timing, slot) for slot in islice(slots_after(timing, moment), count))


def _note(timing: Timing, slot: datetime) -> str | None:
    """The note of a slot, from the local times that the expression names."""
    zone = ZoneInfo(timing.timezone)
    local = slot.astimezone(zone)
    wall_time = local.replace(tzinfo=None, fold=0)
    other = wall_time.replace(tzinfo=zone, fold=1 - local.fold).astimezone(UTC)
    if other != slot:
        return _repeated_note(timing, local, other)
    before = _named_time_before(timing, wall_time)
    if before is None or _exists(before, zone):
        return None
    skipped = f"{_time_and_date(before)} does not exist, as the clock goes forward"
    if not _means(timing, wall_time):
        return f"{skipped}: runs at {_time(wall_time)}"
    if not is_fixed(timing):
        # Expressions of every hour miss none in real time.
        return None if timing.cron.split()[-4] == "*" else f"{skipped}: skipped before this one"
    starts_at_gap = (slot - _TICK).astimezone(zone).utcoffset() != local.utcoffset()
    return f"{skipped}: this slot runs for it too" if starts_at_gap else None


def _repeated_note(timing: Timing, local: datetime, other: datetime) -> str:
    repeated = f"{_time_and_date(local)} occurs twice, as the clock goes back"
    if next_slot(timing, other - _TICK) != other:
        return f"{repeated}: runs the {'second' if local.fold else 'first'} time"
    return f"{repeated}: runs both times, this is the {'second' if local.fold else 'first'}"


def _exists(wall_time: datetime, zone: ZoneInfo) -> bool:
    """Whether the clock of the zone ever shows this time."""
    shown = wall_time.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)
    return shown.replace(tzinfo=None, fold=0) == wall_time


def _means(timing: Timing, wall_time: datetime) -> bool:
    """Whether the expression names this time, and was not moved to the end of a gap."""
    return next(CronSim(timing.cron, wall_time - _TICK), None) == wall_time


def _named_time_before(timing: Timing, wall_time: datetime) -> datetime | None:
    return next(CronSim(timing.cron, wall_time, reverse=True), None)


def _time_and_date(wall_time: datetime) -> str:
    return f"{_time(wall_time)} on {wall_time:%Y-%m-%d}"


def _time(wall_time: datetime) -> str:
    return f"{wall_time:%H:%M:%S}" if wall_time.second else f"{wall_time:%H:%M}"
