"""Laws of cron maths: slots, also across clock changes, and which of them fire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laneway.domain import cron
from laneway.domain.codec import to_json
from laneway.domain.cron import check_cron, check_timezone, next_slot, parse, slots_after
from laneway.domain.schedule import Schedule, plan_fires, replanned, validate_schedule_change
from laneway.errors import InvalidInput

BERLIN = "Europe/Berlin"
HOUR = timedelta(hours=1)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


def first(expression: str, since: datetime, count: int, zone: str = BERLIN) -> list[str]:
    found = islice(slots_after(parse(expression, zone), since), count)
    return [slot.strftime("%d %H:%M") for slot in found]


# -- the clock changes, in UTC; Berlin is one hour ahead in winter, two in summer ---------------


def test_in_spring_a_fixed_time_in_the_gap_runs_once_when_the_gap_is_over() -> None:
    assert first("30 2 * * *", utc(2026, 3, 28), 3) == ["28 01:30", "29 01:00", "30 00:30"]
    assert first("15,45 2 * * *", utc(2026, 3, 28, 12), 2) == ["29 01:00", "30 00:15"]


def test_in_autumn_a_fixed_time_that_comes_twice_runs_the_first_time() -> None:
    assert first("30 2 * * *", utc(2026, 10, 24), 3) == ["24 00:30", "25 00:30", "26 01:30"]


@pytest.mark.parametrize("minute", range(0, 60, 7))
def test_past_slots_do_not_repeat_within_repeated_hour(minute: int) -> None:
    now = utc(2026, 10, 25, 1, minute)
    found = next_slot(parse("50 2 * * *", BERLIN), now)
    assert found == utc(2026, 10, 26, 1, 50)


def test_frequent_schedules_follow_real_time_at_clock_changes() -> None:
    spring = ["29 00:30", "29 01:00", "29 01:30"]
    assert first("*/30 * * * *", utc(2026, 3, 29), 3) == spring
    autumn = ["25 00:00", "25 00:30", "25 01:00", "25 01:30", "25 02:00"]
    assert first("*/30 * * * *", utc(2026, 10, 24, 23, 30), 5) == autumn
    assert first("0 * * * *", utc(2026, 10, 24, 23), 3) == ["25 00:00", "25 01:00", "25 02:00"]


def test_with_seconds_fixed_time_runs_once_at_both_clock_changes() -> None:
    spring = ["27 01:30", "28 01:00", "29 00:30"]
    assert first("0 30 2 * * *", utc(2027, 3, 27), 3) == spring
    assert first("*/20 30 2 * * *", utc(2027, 3, 28), 2) == ["28 01:00", "29 00:30"]
    autumn = ["30 00:30", "31 00:30", "01 01:30"]
    assert first("0 30 2 * * *", utc(2027, 10, 30), 3) == autumn


@settings(deadline=None)
@given(
    st.sampled_from(["30 2 * * *", "*/7 * * * *", "0 */2 * * *", "5 1-3 * * *", "*/20 2 * * *"]),
    st.sampled_from([BERLIN, "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "UTC"]),
    # Before the changes of each of these zones.
    st.sampled_from([(3, 12), (3, 26), (4, 2), (10, 1), (10, 29), (11, 5), (12, 28)]),
    st.integers(0, 86400),
)
def test_clock_changes_treat_six_fields_like_five(
    expression: str, zone: str, day: tuple[int, int], start: int
) -> None:
    moment = utc(2011, *day) + timedelta(seconds=start)
    five, six = parse(expression, zone), parse(f"0 {expression}", zone)
    assert list(islice(slots_after(six, moment), 50)) == list(islice(slots_after(five, moment), 50))


@settings(deadline=None)
@given(
    st.sampled_from(
        [
            "30 2 * * *",
            "*/7 * * * *",
            "0 */2 * * *",
            "5 1-3 * * *",
            "15,45 2 * * *",
            "7,37 30 2 * * *",
        ]
    ),
    st.sampled_from([utc(2026, 3, 29), utc(2026, 10, 25)]),
    st.integers(0, 6 * 3600 * 1_000_000),
)
def test_slots_do_not_depend_on_starting_point(expression: str, day: datetime, micros: int) -> None:
    timing, end = parse(expression, BERLIN), day + timedelta(days=2)
    start = day - timedelta(hours=2) + timedelta(microseconds=micros)
    every = [s for s in islice(slots_after(timing, day - 2 * HOUR), 600) if s < end]
    some = [s for s in islice(slots_after(timing, start), 600) if s < end]
    assert some == [s for s in every if s > start]
    assert some == sorted(set(some))


# -- expressions and zones ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression,rule",
    [
        ("61 * * * *", "its minute field is not valid: '61'"),
        ("* 24 * * *", "its hour field"),
        ("* * 0 * *", "its day-of-month field"),
        ("* * * FOO *", "its month field"),
        ("* * * * 9", "its day-of-week field"),
        ("61 * * * * *", "its seconds field is not valid: '61'"),
        ("0 0 31 2 *", "its day-of-month field"),
        ("* * * *", "five fields"),
        ("* * * * * * *", "five fields"),
        ("", "must not be empty"),
        ("@reboot", "there are @yearly"),
        ("0" * 300, "at most 200 bytes"),
        (5, "must be text"),
    ],
)
def test_wrong_expression_is_refused_by_field_and_rule(expression: object, rule: str) -> None:
    with pytest.raises(InvalidInput, match=r"^cron: ") as caught:
        check_cron(expression)
    assert rule in caught.value.rule


@settings(deadline=None)
@given(st.text(alphabet="0123456789*/,-#LW @ABJSUNMOFRI", max_size=40))
def test_any_expression_is_accepted_or_refused(text: str) -> None:
    try:
        timing = parse(text, "UTC")
    except InvalidInput as error:
        assert error.field == "cron"  # noqa: PT017 - both ways are fine, no third
    else:
        assert next_slot(timing, utc(2026, 1, 1)) is not None
        assert cron.describe(text)


@pytest.mark.parametrize("alias", list(cron.ALIASES))
def test_aliases_stand_for_expressions(alias: str) -> None:
    assert next_slot(parse(alias, "UTC"), utc(2026, 5, 17, 12, 30)) is not None


@pytest.mark.parametrize(
    "name",
    ["Mars/Base", "Europe", "../etc/passwd", "/etc/passwd", "", "a\x00", "é", "localtime", 1],
)
def test_wrong_time_zone_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput, match=r"^timezone: "):
        check_timezone(name)


# -- which slots fire ---------------------------------------------------------------------------

HOURLY = parse("0 * * * *", "UTC")


def test_on_time_every_policy_fires_the_slot() -> None:
    at = utc(2026, 1, 1, 3)
    for missed in ("skip", "coalesce", "catch_up"):
        turn = plan_fires(HOURLY, missed, 10, at, at + timedelta(seconds=1))
        assert turn == ((at,), None, None, None, at + HOUR)


def test_schedule_does_not_fire_early() -> None:
    at = utc(2026, 1, 1, 3)
    assert plan_fires(HOURLY, "catch_up", 10, at, at - timedelta(seconds=1)).slots == ()


def test_skip_fires_slots_up_to_a_minute_late_and_counts_others() -> None:
    at = utc(2026, 1, 1, 3)
    assert plan_fires(HOURLY, "skip", 10, at, at + timedelta(seconds=60)).slots == (at,)
    late = plan_fires(HOURLY, "skip", 10, at, at + timedelta(seconds=61))
    assert late == ((), None, at, "1 slot missed since 2026-01-01T03:00:00Z", at + HOUR)
    much = plan_fires(HOURLY, "skip", 10, at, at + 5 * HOUR)
    assert much.slots == (at + 5 * HOUR,)
    assert much.missed_at == at + 4 * HOUR
    assert much.missed == "5 slots missed since 2026-01-01T03:00:00Z"


def test_coalesce_fires_the_newest_once() -> None:
    at = utc(2026, 1, 1, 3)
    turn = plan_fires(HOURLY, "coalesce", 10, at, at + 5 * HOUR + timedelta(minutes=1))
    assert turn.slots == (at + 5 * HOUR,)
    assert turn.note == "also for 5 slots missed since 2026-01-01T03:00:00Z"
    assert (turn.missed_at, turn.next_at) == (None, at + 6 * HOUR)


def test_catch_up_fires_the_newest_oldest_first() -> None:
    at = utc(2026, 1, 1, 3)
    turn = plan_fires(HOURLY, "catch_up", 3, at, at + 5 * HOUR)
    assert turn.slots == tuple(at + i * HOUR for i in (3, 4, 5))
    assert (turn.missed_at, turn.missed) == (
        at + 2 * HOUR,
        "3 slots missed since 2026-01-01T03:00:00Z",
    )
    assert turn.next_at == at + 6 * HOUR


def test_long_catch_up_is_split_into_transactions() -> None:
    at = utc(2026, 1, 1)
    fired: list[datetime] = []
    now, next_at = at + 249 * HOUR, at
    while next_at <= now:
        turn = plan_fires(HOURLY, "catch_up", 1000, next_at, now, 100)
        assert len(turn.slots) <= 100
        assert turn.next_at is not None
        fired += turn.slots
        next_at = turn.next_at
    assert fired == [at + i * HOUR for i in range(250)]


@pytest.mark.parametrize("missed,count", [("skip", 61), ("coalesce", 1), ("catch_up", 1000)])
def test_years_of_absence_cost_no_more_than_a_day(missed: str, count: int) -> None:
    every_second = parse("* * * * * *", BERLIN)
    now = utc(2026, 10, 25, 0, 30)
    turn = plan_fires(every_second, missed, 1000, utc(2020, 1, 1), now, 1000)
    assert turn.slots == tuple(now - timedelta(seconds=i) for i in reversed(range(count)))
    assert "more than " in (turn.note or turn.missed or "")
    assert turn.next_at == now + timedelta(seconds=1)


@settings(deadline=None)
@given(
    st.sampled_from(["skip", "coalesce", "catch_up"]),
    st.integers(1, 20),
    st.lists(st.integers(1, 300_000), min_size=1, max_size=20),
    st.integers(1, 5),
)
def test_slots_fire_once_and_in_order_at_any_poll_rate(
    missed: str, catch_up: int, pauses: list[int], most: int
) -> None:
    timing, now = parse("*/20 2-4 * * *", BERLIN), utc(2026, 10, 24)
    next_at = next_slot(timing, now)
    fired: list[datetime] = []
    for pause in pauses:
        now += timedelta(seconds=pause)
        assert next_at is not None
        turn = plan_fires(timing, missed, catch_up, next_at, now, most)
        assert all(next_at <= slot <= now for slot in turn.slots)
        fired += turn.slots
        if next_at <= now:
            assert turn.next_at is not None
            assert turn.next_at > next_at
            next_at = turn.next_at
    assert fired == sorted(set(fired))


# -- settings -----------------------------------------------------------------------------------

GOOD = {"name": "nightly", "job_type": "t", "cron": "0 3 * * *"}


@pytest.mark.parametrize(
    "ahead,changed,expected",
    [
        # As far ahead as it is late: the plan stays.
        (timedelta(0), -timedelta(days=2), None),
        # The clock was a day ahead: the slot of half a minute ago may not have fired.
        (timedelta(days=1), -timedelta(days=2), utc(2027, 6, 1, 3)),
        # Changed after that slot, or while the clock was ahead.
        (timedelta(days=1), -timedelta(seconds=10), utc(2027, 6, 1, 4)),
        (timedelta(days=1), timedelta(hours=20), utc(2027, 6, 1, 4)),
    ],
)
def test_plan_of_a_clock_ahead_is_made_again(
    ahead: timedelta, changed: timedelta, expected: datetime | None
) -> None:
    now = utc(2027, 6, 1, 3, 0, 30)
    last = utc(2027, 6, 1, 3) + ahead
    assert replanned(HOURLY, last + HOUR, last, now + changed, now) == expected


def test_plan_made_a_little_ahead_starts_from_now() -> None:
    now, last = utc(2027, 6, 1, 2, 59, 30), utc(2027, 6, 1, 3)
    assert replanned(HOURLY, last + HOUR, last, now - HOUR, now) == last


def test_new_schedule_takes_the_defaults() -> None:
    made = Schedule.of(GOOD)
    assert (made.timezone, made.missed, made.catch_up, made.enabled) == (
        "UTC",
        "coalesce",
        10,
        True,
    )
    assert to_json(made)["payload"] == {}


@pytest.mark.parametrize(
    "field,value",
    [
        ("name", "Bad Name"), ("job_type", ""), ("cron", "x"), ("timezone", "x"), ("missed", "all"),
        ("catch_up", 0), ("catch_up", 1001), ("catch_up", True), ("check_name", ""),
        ("priority", 40000), ("max_retries", -1), ("workspace", ""), ("tags", "x"), ("tags", [1]),
        ("enabled", 1), ("payload", {"a": float("nan")}), ("concurrency_key", ""),
        ("error", "x"), ("next_at", None), ("created_at", None), ("colour", "red"),
    ],
)  # fmt: skip
def test_wrong_setting_is_refused_by_its_name(field: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        Schedule.of({**GOOD, field: value})
    assert caught.value.field.split("[")[0].split(".")[0] == field


@pytest.mark.parametrize("field", GOOD)
def test_new_schedule_needs_name_type_and_cron(field: str) -> None:
    with pytest.raises(InvalidInput, match=f"{field}: is required"):
        Schedule.of({name: value for name, value in GOOD.items() if name != field})


def test_change_lists_changed_fields_without_name() -> None:
    assert validate_schedule_change({"cron": "@daily"}) == {"cron": "@daily"}
    with pytest.raises(InvalidInput, match="name: cannot be changed"):
        validate_schedule_change({"name": "other"})
