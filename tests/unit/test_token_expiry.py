"""When a token counts as expiring soon, and how warnings say it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from laneway.domain.duration import DAY_S, HOUR_S
from laneway.domain.token import TokenExpiry, expiry_text


@pytest.mark.parametrize(
    "left_s, life_s, soon_s",
    [
        (8 * DAY_S, 90 * DAY_S, None),
        (7 * DAY_S, 90 * DAY_S, 7 * DAY_S),
        (6.9 * DAY_S, 90 * DAY_S, 6 * DAY_S),
        (23.5 * HOUR_S, 90 * DAY_S, 23 * HOUR_S),
        (60, 90 * DAY_S, 0),
        # A token for one day must not warn all day.
        (7 * HOUR_S, DAY_S, None),
        (6 * HOUR_S, DAY_S, 6 * HOUR_S),
    ],
)
def test_token_expires_soon_in_its_last_week_or_quarter(
    left_s: float, life_s: float, soon_s: float | None
) -> None:
    assert TokenExpiry(datetime.now(UTC), left_s, life_s).soon_s == soon_s


@pytest.mark.parametrize(
    "left_s, text",
    [
        (5.9 * DAY_S, "expires in 5 days"),
        (DAY_S, "expires in 1 day"),
        (23.5 * HOUR_S, "expires in 23 hours"),
        (1799, "expires within the hour"),
    ],
)
def test_warning_says_the_whole_days_or_hours_left(left_s: float, text: str) -> None:
    assert expiry_text(left_s) == text
