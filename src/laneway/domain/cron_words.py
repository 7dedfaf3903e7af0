"""Cron expressions in plain words, if a short sentence describes them exactly."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from laneway.domain.cron import ALIASES

_DAYS: Final = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_DAY_NUMBERS: Final = {name.upper(): number for number, name in enumerate(_DAYS)}
_MONTH_NUMBERS: Final = {name[:3].upper(): number for number, name in enumerate(_MONTHS, 1)}
# More times a day do not fit a short sentence.
_MAX_TIMES: Final = 4
_LEAP_YEAR: Final = 2024
# Every month has as many days.
_SURE_DAYS: Final = 28


@lru_cache(maxsize=4096)
def words(cron: str, timezone: str) -> str:
    """`At 02:30, Mon–Fri, Europe/Berlin`; else the expression itself."""
    parts = ALIASES.get(cron, cron).upper().split()
    if len(parts) == 6 and parts[1:] == ["*"] * 5 and (every := _step(parts[0], 60)):
        return f"Every {'second' if every == 1 else f'{every} seconds'}, {timezone}"
    if len(parts) != 5:
        return cron
    minute, hour, day, month, weekday = parts
    times, days = _times(minute, hour), _days(day, month, weekday)
    if times is None or days is None:
        return cron
    if not days and times.is_single:
        days = "every day"
    return ", ".join(part for part in (times.text, days, timezone) if part)


class _Times(NamedTuple):
    """The times of a day; `is_single`: a short list of times."""

    text: str
    is_single: bool = False


def _times(minute: str, hour: str) -> _Times | None:
    at, every = _number(minute), _step(minute, 60)
    if every is not None:
        often = "Every minute" if every == 1 else f"Every {every} minutes"
        if hour == "*":
            return _Times(often)
        span = _span(hour)
        last = 60 - every
        return span and _Times(f"{often} from {_clock(span[0], 0)} to {_clock(span[1], last)}")
    if at is None or at > 59:
        return None
    if (hours := _step(hour, 24)) is not None:
        often = "Every hour" if hours == 1 else f"Every {hours} hours from {_clock(0, at)} on"
        return _Times(f"{often} at :{at:02d}" if hours == 1 else often)
    if span := _span(hour):
        return _Times(f"Every hour from {_clock(span[0], at)} to {_clock(span[1], at)}")
    named = [_number(each) for each in hour.split(",")]
    found = sorted({each for each in named if each is not None and each < 24})
    if None in named or len(set(named)) != len(found) or len(found) > _MAX_TIMES:
        return None
    return _Times(f"At {_listed([_clock(each, at) for each in found])}", is_single=True)


def _days(day: str, month: str, weekday: str) -> str | None:
    """The days in words; empty for every day, None if it takes more words."""
    if day != "*" and weekday != "*":
        return None
    in_month, longest = "", 31
    if month != "*":
        number = _number(month, _MONTH_NUMBERS)
        if number is None or not 1 <= number <= 12:
            return None
        in_month, (_, longest) = _MONTHS[number - 1], monthrange(_LEAP_YEAR, number)
    if day != "*":
        number = _number(day)
        if number is None or not 1 <= number <= longest:
            return None
        if in_month:
            return f"on {number} {in_month}"
        return f"on day {number} of every month" if number <= _SURE_DAYS else None
    if weekday == "*":
        return f"every day in {in_month}" if in_month else ""
    named = _weekdays(weekday)
    if named is None:
        return None
    if len(named) == 7:
        return f"every day in {in_month}" if in_month else ""
    days = _day_names(named)
    return f"{days} in {in_month}" if in_month else days


def _weekdays(text: str) -> list[int] | None:
    """The named days, from Monday (1) to Sunday (7)."""
    found: set[int] = set()
    for term in text.split(","):
        ends = [_number(each, _DAY_NUMBERS) for each in term.split("-")]
        numbers = [each for each in ends if each is not None and each <= 7]
        if len(numbers) != len(ends) or not 1 <= len(ends) <= 2 or numbers != sorted(numbers):
            return None
        found.update(each or 7 for each in range(numbers[0], numbers[-1] + 1))
    return sorted(found)


def _day_names(days: Sequence[int]) -> str:
    names = [_DAYS[each % 7] for each in days]
    if len(days) > 2 and days[-1] - days[0] == len(days) - 1:
        return f"{names[0]}–{names[-1]}"
    return _listed(names)


def _number(text: str, names: dict[str, int] | None = None) -> int | None:
    if names and text in names:
        return names[text]
    return int(text) if text.isascii() and text.isdigit() else None


def _step(text: str, whole: int) -> int | None:
    """N if the field means every N-th, evenly; else None."""
    if text == "*":
        return 1
    star, _, step = text.partition("/")
    number = _number(step)
    if star != "*" or not number or number >= whole or whole % number:
        return None
    return number


def _span(text: str) -> tuple[int, int] | None:
    ends = [_number(each) for each in text.split("-")]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return None
    return (ends[0], ends[1]) if ends[0] < ends[1] < 24 else None


def _clock(hour: int, minute: int) -> str:
    return f"{hour:02d}:{minute:02d}"


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
