"""Longest durations: one figure in Python, SQL and TypeScript."""

from __future__ import annotations

import math
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from laneway import Context
from laneway.domain.duration import CENTURY_S, DAY_S, YEAR_S, check_duration, check_wait, seconds_of
from laneway.engine.registry import make_handler
from laneway.errors import ConfigError, InvalidInput

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("seconds", [0, -1, YEAR_S + 1, float("nan"), float("inf"), 10**400])
def test_duration_outside_its_range_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidInput, match="more than 0 seconds and at most a year"):
        check_duration(seconds, "timeout")


def test_numbers_and_timedeltas_are_durations() -> None:
    assert check_duration(YEAR_S, "timeout") == YEAR_S
    assert seconds_of(timedelta(days=1)) == DAY_S
    for wrong in ("1", True, None):
        with pytest.raises(InvalidInput, match="a number of seconds, or a timedelta"):
            seconds_of(wrong)


@pytest.mark.parametrize("wrong", [CENTURY_S + 1, math.inf, math.nan, "5s", True, None])
def test_duration_of_a_wait_is_at_most_a_century(wrong: object) -> None:
    with pytest.raises(InvalidInput, match=r"^timeout: must be "):
        check_wait(wrong, "timeout")
    allowed = (0, CENTURY_S, timedelta(hours=1), -1, -math.inf, timedelta(seconds=-1))
    assert [check_wait(one, "t") for one in allowed] == [0, CENTURY_S, 3600, 0, 0, 0]


async def handler(ctx: Context) -> None: ...


@pytest.mark.parametrize("setting", ["timeout", "max_age"])
def test_handler_timeout_and_max_age_have_one_bound(setting: Any) -> None:
    longest: Any = {setting: YEAR_S}
    longer: Any = {setting: YEAR_S + 1}
    made = make_handler("longest", handler, **longest)
    assert getattr(made, f"{setting}_s") == YEAR_S
    with pytest.raises(ConfigError, match=f"{setting}: must be more than 0 seconds"):
        make_handler("longer", handler, **longer)


def test_sql_and_typescript_have_the_same_bounds() -> None:
    definitions = files("laneway.store") / "definitions"
    submit = (definitions / "submit.sql").read_text("utf-8")
    assert f"p_max_age <= {YEAR_S:.0f}" in submit
    assert f"interval '{CENTURY_S / DAY_S:.0f} days'" in submit
    for name in ("settle.sql", "submit_batch.sql"):
        assert f"{CENTURY_S:.0f}" in (definitions / name).read_text("utf-8"), name
    call_retry = (ROOT / "sdk/typescript/src/call_retry.ts").read_text("utf-8")
    assert f"{YEAR_S / DAY_S:.0f} * 86_400_000" in call_retry
