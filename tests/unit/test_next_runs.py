"""Laws of future slots: times, notes on clock changes, and cron expressions in words."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from itertools import takewhile
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laneway.domain.codec import to_json
from laneway.domain.cron import parse, slots_after
from laneway.domain.cron_words import words
from laneway.domain.next_runs import fires_after
from laneway.domain.schedule import Schedule

BERLIN = "Europe/Berlin"


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


def fires(expression: str, since: datetime, count: int = 3) -> list[tuple[str, str | None]]:
    found = fires_after(parse(expression, BERLIN), since, count)
    return [(each.at.strftime("%d %H:%M"), each.note) for each in found]


# -- clock changes: Berlin goes forward on 29 March 2026 at 02:00, back on 25 October at 03:00 -----

GAP = "does not exist, as the clock goes forward"
TWICE = "occurs twice, as the clock goes back"


def test_fixed_time_in_gap_is_described_as_moved() -> None:
    assert fires("30 2 * * *", utc(2026, 3, 28)) == [
        ("28 01:30", None),
        ("29 01:00", f"02:30 on 2026-03-29 {GAP}: runs at 03:00"),
        ("30 00:30", None),
    ]


def test_fixed_time_moved_onto_another_is_described_there() -> None:
    assert fires("0 2,3 * * *", utc(2026, 3, 28, 12), 2) == [
        ("29 01:00", f"02:00 on 2026-03-29 {GAP}: this slot runs for it too"),
        ("30 00:00", None),
    ]


def test_real_time_schedule_lists_skipped_runs_unless_hourly() -> None:
    assert fires("0 */2 * * *", utc(2026, 3, 29), 2) == [
        ("29 02:00", f"02:00 on 2026-03-29 {GAP}: skipped before this one"),
        ("29 04:00", None),
    ]
    assert fires("*/30 2 * * *", utc(2026, 3, 28, 12), 1) == [
        ("30 00:00", f"02:30 on 2026-03-29 {GAP}: skipped before this one")
    ]
    assert {note for _, note in fires("15 * * * *", utc(2026, 3, 28, 22), 8)} == {None}


def test_fixed_time_that_repeats_is_described_as_running_once() -> None:
    assert fires("30 2 * * *", utc(2026, 10, 24, 12), 2) == [
        ("25 00:30", f"02:30 on 2026-10-25 {TWICE}: runs the first time"),
        ("26 01:30", None),
    ]


def test_runs_in_repeated_hour_show_which_hour() -> None:
    both = f"02:15 on 2026-10-25 {TWICE}: runs both times, this is the"
    assert fires("15 * * * *", utc(2026, 10, 24, 23, 30), 4) == [
        ("25 00:15", f"{both} first"),
        ("25 01:15", f"{both} second"),
        ("25 02:15", None),
        ("25 03:15", None),
    ]


EXPRESSIONS = [
    "30 2 * * *", "0 3 * * *", "*/7 * * * *", "0 */2 * * *", "5 1-3 * * *", "15,45 2 * * *",
    "0 0 * * SUN", "*/20 30 2 * * *", "0 2 29 3 *", "*/30 2 29 3 *",
]  # fmt: skip


@settings(deadline=None)
@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
    st.integers(0, 2 * 365 * 86400),
)
def test_fires_are_slots_and_have_a_note_only_near_a_clock_change(
    expression: str, zone: str, seconds: int
) -> None:
    timing, moment = parse(expression, zone), utc(2026, 1, 1) + timedelta(seconds=seconds)
    fires = fires_after(timing, moment)
    slots = slots_after(timing, moment)
    assert [each.at for each in fires] == [next(slots) for _ in fires]
    for each in fires:
        if each.note is None:
            continue
        named = re.search(r"on (\d{4}-\d\d-\d\d) ", each.note)
        assert named is not None
        day = datetime.fromisoformat(named[1]).replace(tzinfo=ZoneInfo(zone))
        assert day.utcoffset() != (day + timedelta(days=1)).utcoffset()


# -- the schedule ---------------------------------------------------------------------------------


def nightly(**more: Any) -> Schedule:
    given: dict[str, Any] = {"next_at": utc(2026, 5, 2, 3), "as_of": utc(2026, 5, 1, 12), **more}
    return Schedule(name="nightly", job_type="a", cron="0 3 * * *", **given)


def days(schedule: Schedule) -> list[int]:
    return [each.at.day for each in schedule.next_fires]


def test_schedule_shows_next_three_runs() -> None:
    assert days(nightly()) == [2, 3, 4]
    assert days(nightly(as_of=None)) == [2, 3, 4]


def test_stopped_or_unplanned_schedule_shows_no_runs() -> None:
    assert nightly(enabled=False).next_fires == nightly(next_at=None).next_fires == ()


def test_due_schedule_fires_once_for_late_slots_unless_skipped() -> None:
    late = utc(2026, 5, 5, 12)
    assert days(nightly(as_of=late)) == [2, 6, 7]
    assert days(nightly(as_of=late, missed="skip")) == [6, 7, 8]
    assert days(nightly(as_of=utc(2026, 5, 2, 3, 0, 30), missed="skip")) == [2, 3, 4]


def test_expression_written_past_the_checks_spoils_nothing() -> None:
    broken = Schedule(name="x", job_type="a", cron="61 * * * *", next_at=utc(2026, 5, 2))
    assert broken.next_fires == ()
    assert to_json(broken)["words"] == "61 * * * *"


# -- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression, sentence",
    [
        ("30 2 * * MON-FRI", "At 02:30, Mon–Fri, Europe/Berlin"),
        ("@daily", "At 00:00, every day, Europe/Berlin"),
        ("@weekly", "At 00:00, Sun, Europe/Berlin"),
        ("@monthly", "At 00:00, on day 1 of every month, Europe/Berlin"),
        ("@yearly", "At 00:00, on 1 January, Europe/Berlin"),
        ("@hourly", "Every hour at :00, Europe/Berlin"),
        ("*/5 * * * *", "Every 5 minutes, Europe/Berlin"),
        ("*/20 * * * * *", "Every 20 seconds, Europe/Berlin"),
        ("* * * * * *", "Every second, Europe/Berlin"),
        ("5 */2 * * *", "Every 2 hours from 00:05 on, Europe/Berlin"),
        ("0 8-18 * * 1-5", "Every hour from 08:00 to 18:00, Mon–Fri, Europe/Berlin"),
        ("0 8,12 * * sat,sun", "At 08:00 and 12:00, Sat and Sun, Europe/Berlin"),
        ("0 2 * mar *", "At 02:00, every day in March, Europe/Berlin"),
    ],
)
def test_simple_expressions_have_a_sentence(expression: str, sentence: str) -> None:
    assert words(expression, BERLIN) == sentence


@pytest.mark.parametrize(
    "expression",
    [
        "*/7 * * * *", "0 */5 * * *", "0 0 31 * *", "0 0 1 * MON", "0 0 * * MON#1", "0 0 L * *",
        "1,2 3 * * *", "0 1,2,3,4,5 * * *", "61 * * * *", "5 24 * * *", "nothing",
        "0 0 30 2 *", "0 0 31 apr *", "5 * * * * *", "*/7 * * * * *",
    ],
)  # fmt: skip
def test_expression_without_exact_sentence_is_shown_verbatim(expression: str) -> None:
    assert words(expression, BERLIN) == expression


NUMBER = st.integers(0, 59).map(str)
HOURS = st.integers(0, 23)
SPAN = st.tuples(HOURS, HOURS).map(lambda two: f"{min(two)}-{max(two)}")
NAMED_DAYS = st.sampled_from(["SUN", "mon", "WED", "0", "3", "7", "1-5", "MON-FRI", "5-7", "0-6"])


def star(*others: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.just("*"), *others)


def stepped(most: int) -> st.SearchStrategy[str]:
    return st.integers(1, most).map(lambda n: f"*/{n}")


def several(one: st.SearchStrategy[str], most: int) -> st.SearchStrategy[str]:
    return st.lists(one, min_size=1, max_size=most).map(",".join)


EXPRESSION = st.tuples(
    star(NUMBER, NUMBER, stepped(70)),
    star(HOURS.map(str), several(HOURS.map(str), 5), stepped(30), SPAN),
    star(st.integers(1, 31).map(str)),
    star(st.integers(1, 12).map(str), st.sampled_from(["JAN", "feb"])),
    star(several(NAMED_DAYS, 3)),
).map(" ".join)


@settings(deadline=None, max_examples=200)
@given(EXPRESSION, st.dates(date(2024, 1, 1), date(2027, 12, 31)))
def test_sentence_read_back_names_exactly_the_slots(expression: str, start: date) -> None:
    sentence = words(expression, "UTC")
    if sentence == expression:
        return
    minutes, holds = read_back(sentence)
    span = 2 if len(minutes) > 24 else 800
    begin = datetime.combine(start, time(), UTC)
    expected = [
        begin + timedelta(days=day, minutes=minute)
        for day in range(span)
        if holds(start + timedelta(days=day))
        for minute in minutes
    ]
    end = begin + timedelta(days=span)
    slots = slots_after(parse(expression, "UTC"), begin - timedelta(seconds=1))
    assert list(takewhile(lambda slot: slot < end, slots)) == expected


def read_back(sentence: str) -> tuple[list[int], Callable[[date], bool]]:
    """Parse the minutes of a day and the days that a sentence names."""
    words_ = sentence.removesuffix(", UTC")
    assert words_ != sentence
    clock = r"\d\d:\d\d"
    if found := re.match(rf"At ({clock}(?:, {clock})*(?: and {clock})?)", words_):
        minutes = [_minute(each) for each in re.findall(clock, found[1])]
    elif found := re.match(rf"Every hour from ({clock}) to ({clock})", words_):
        minutes = list(range(_minute(found[1]), _minute(found[2]) + 1, 60))
    elif found := re.match(r"Every hour at :(\d\d)", words_):
        minutes = list(range(int(found[1]), 1440, 60))
    elif found := re.match(rf"Every (\d+) hours from ({clock}) on", words_):
        minutes = list(range(_minute(found[2]), 1440, 60 * int(found[1])))
    else:
        found = re.match(
            rf"Every (?:minute|(\d+) minutes)(?: from ({clock}) to ({clock}))?", words_
        )
        assert found is not None, sentence
        first, last = (_minute(found[2]), _minute(found[3])) if found[2] else (0, 1439)
        minutes = list(range(first, last + 1, int(found[1] or 1)))
    return minutes, _days(words_[found.end() :].removeprefix(", "))


def _minute(clock: str) -> int:
    return int(clock[:2]) * 60 + int(clock[3:])


def _days(words_: str) -> Callable[[date], bool]:
    if words_ in ("", "every day"):
        return lambda day: True
    if found := re.fullmatch(r"on day (\d+) of every month", words_):
        number = int(found[1])
        return lambda day: day.day == number
    if found := re.fullmatch(r"on (\d+ \w+)", words_):
        named_day = found[1]
        return lambda day: f"{day.day} {day:%B}" == named_day
    names, _, month = words_.partition(" in ")
    week = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    if "–" in names:
        first, last = (week.index(each) for each in names.split("–"))
        named = week[first : last + 1]
    else:
        named = week if names == "every day" else re.split(r", | and ", names)
    assert set(named) <= set(week), words_
    return lambda day: f"{day:%a}" in named and month in ("", f"{day:%B}")
