"""The next slots of a schedule, with notes on clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim

from laneway.domain.cron import Timing, is_fixed, next_slot, slots_after

FIRES: Final = 3
_TICK: Final = timedelta(seconds=1)


class Fire(NamedTuple):
    """A future slot; `note` describes the effect of a clock change on it."""

    at: datetime
    note: str | None

    def to_dict(self) -> dict[str, object]:
        return {"at": self.at.isoformat(), "note": self.note}


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
    face = local.replace(tzinfo=None, fold=0)
    other = face.replace(tzinfo=zone, fold=1 - local.fold).astimezone(UTC)
    if other != slot:
        return _repeated_note(timing, local, other)
    before = _face_before(timing, face)
    if before is None or _exists(before, zone):
        return None
    skipped = f"{_time_and_date(before)} does not exist, as the clock goes forward"
    if not _means(timing, face):
        return f"{skipped}: runs at {_time(face)}"
    if not is_fixed(timing):
        # Expressions of every hour miss none in real time.
        return None if timing.cron.split()[-4] == "*" else f"{skipped}: skipped before this one"
    starts_at_gap = (slot - _TICK).astimezone(zone).utcoffset() != local.utcoffset()
    return f"{skipped}: this slot runs for it too" if starts_at_gap else None


def _repeated_note(timing: Timing, local: datetime, other: datetime) -> str:
    twice = f"{_time_and_date(local)} comes twice, as the clock goes back"
    if next_slot(timing, other - _TICK) != other:
        return f"{twice}: runs the {'second' if local.fold else 'first'} time"
    return f"{twice}: runs both times, this is the {'second' if local.fold else 'first'}"


def _exists(face: datetime, zone: ZoneInfo) -> bool:
    """Whether the clock of the zone ever shows this time."""
    shown = face.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)
    return shown.replace(tzinfo=None, fold=0) == face


def _means(timing: Timing, face: datetime) -> bool:
    """Whether the expression names this time, and was not moved to the end of a gap."""
    return next(CronSim(timing.cron, face - _TICK), None) == face


def _face_before(timing: Timing, face: datetime) -> datetime | None:
    return next(CronSim(timing.cron, face, reverse=True), None)


def _time_and_date(face: datetime) -> str:
    return f"{_time(face)} on {face:%Y-%m-%d}"


def _time(face: datetime) -> str:
    return f"{face:%H:%M:%S}" if face.second else f"{face:%H:%M}"
