"""The slots of a cron expression in a time zone: moments in UTC."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, takewhile
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from laneway.domain.text import check_text
from laneway.errors import InvalidInput

CRON_BYTES: Final = 200
ZONE_BYTES: Final = 64

ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS: Final = ("second", "minute", "hour", "day-of-month", "month", "day-of-week")
# They name another time zone on every machine.
_NO_ZONES: Final = frozenset({"localtime", "posixrules", "Factory"})
# Any day, to try an expression on.
_SOME_DAY: Final = datetime(2000, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
# Twice what a schedule may catch up on.
_COUNTED: Final = 2000


class Timing(NamedTuple):
    """A checked expression and its checked time zone."""

    cron: str
    timezone: str


def check_cron(value: object, field: str = "cron") -> str:
    """Five fields, six with seconds first, or an alias such as @daily; it must have a slot."""
    text = check_text(value, field, max_bytes=CRON_BYTES)
    if text.startswith("@"):
        if text not in ALIASES:
            raise InvalidInput(field, f"{text} is unknown; there are {', '.join(ALIASES)}")
        return text
    parts = text.split()
    if len(parts) not in (5, 6):
        raise InvalidInput(
            field,
            "must have five fields (minute hour day-of-month month day-of-week), "
            f"or six with seconds first, not {len(parts)}",
        )
    try:
        next(CronSim(text, _SOME_DAY))
    except CronSimError as error:
        raise InvalidInput(field, _broken_rule(str(error), parts)) from None
    except StopIteration:
        raise InvalidInput(field, "never occurs") from None
    except (AssertionError, ValueError, OverflowError):
        raise InvalidInput(field, "is not a cron expression") from None
    return text


def _broken_rule(message: str, parts: list[str]) -> str:
    bad = message.removeprefix("Bad ")
    fields = _FIELDS[6 - len(parts) :]
    if bad not in fields:
        return "is not a cron expression"
    part = parts[fields.index(bad)]
    # "its second field" would read as the field after the first.
    bad = "seconds" if bad == "second" else bad
    return f"its {bad} field is not valid: {part!r}"


def check_timezone(value: object, field: str = "timezone") -> str:
    """A name in the time zone database, such as Europe/Berlin."""
    name = check_text(value, field, max_bytes=ZONE_BYTES)
    try:
        if name in _NO_ZONES:
            raise ValueError
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # ZoneInfo reads files: a name may be a directory, or not a path at all.
        raise InvalidInput(
            field, f"unknown time zone {name!r}; write UTC or a name such as Europe/Berlin"
        ) from None
    return name


@lru_cache(maxsize=1024)
def parse(cron: str, timezone: str) -> Timing:
    """The timing of a row, checked again; InvalidInput names the field."""
    return Timing(ALIASES.get(check_cron(cron), cron), check_timezone(timezone))


def slots_after(timing: Timing, moment: datetime) -> Iterator[datetime]:
    """Every slot later than the moment, in order.

    At a clock change, a fixed time that is skipped runs at the end of the gap, and one that occurs
    twice runs the first time. Expressions whose minute or hour begins with `*` follow real time.
    """
    zone = ZoneInfo(timing.timezone)
    local = moment.astimezone(zone)
    if not is_fixed(timing):
        yield from (at.astimezone(UTC) for at in CronSim(timing.cron, local))
        return
    last = moment
    for wall_time in CronSim(timing.cron, local.replace(tzinfo=None, fold=0)):
        slot = _moment_of(wall_time, zone)
        # Not later: in the first pass of a repeated hour, or one of several in a gap.
        if slot > last:
            last = slot
            yield slot


def is_fixed(timing: Timing) -> bool:
    """Whether it names fixed times of day, which a clock change may skip or repeat."""
    minute, hour = timing.cron.split()[-5:-3]
    return not (minute.startswith("*") or hour.startswith("*"))


def _moment_of(wall_time: datetime, zone: ZoneInfo) -> datetime:
    """The first moment when the clock of the zone shows this time, or just skipped it."""
    found = wall_time.replace(tzinfo=zone).astimezone(UTC)
    if found.astimezone(zone).replace(tzinfo=None, fold=0) == wall_time:
        return found
    # Skipped: the offset changes between these two moments; find the second.
    before, after = wall_time.replace(tzinfo=zone, fold=1).astimezone(UTC), found
    old = before.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + (after - before) // 2
        middle = middle.replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after


def next_slot(timing: Timing, moment: datetime) -> datetime | None:
    """The first slot later than the moment; None if fifty years have none."""
    return next(slots_after(timing, moment), None)


class Backlog(NamedTuple):
    """The newest due slots, in order, and their total number; a lower bound unless exact."""

    newest: list[datetime]
    total: int
    is_exact: bool


def backlog(timing: Timing, first: datetime, now: datetime, keep: int) -> Backlog:
    """The slots from the slot `first` to now, in bounded time even after a long absence."""

    def due(start: datetime) -> Iterator[datetime]:
        return takewhile(lambda slot: slot <= now, slots_after(timing, start))

    if first > now:
        return Backlog([], 0, True)
    slots = [first, *islice(due(first), _COUNTED)]
    if len(slots) <= _COUNTED:
        return Backlog(slots[-keep:], len(slots), True)
    span = timedelta(minutes=1)
    while True:
        start = max(first, now - span)
        newest = deque(due(start), keep)
        if len(newest) == keep or start == first:
            return Backlog(list(newest), _COUNTED, False)
        span *= 2


def describe(cron: str) -> str:
    """The expression in words; empty if it is not a cron expression."""
    try:
        return CronSim(ALIASES.get(cron, cron), _SOME_DAY).explain()
    except (CronSimError, AssertionError, ValueError):
        return ""
