"""The wait of a failed job before its retry."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.domain.retry import LARGEST_FACTOR, RetryPolicy
from laneway.errors import InvalidInput

unit = st.floats(0, 1)
policies = st.builds(
    RetryPolicy,
    base=st.floats(0, 100),
    cap=st.floats(100, 1e6),
    factor=st.floats(1, 1e3),
    jitter=st.floats(0, 0.99),
)


@pytest.mark.parametrize("n, seconds", [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (1000, 60)])
def test_by_default_the_wait_doubles_from_one_second_to_sixty(n: int, seconds: float) -> None:
    assert RetryPolicy().delay(n, 0.5) == seconds
    assert RetryPolicy().delay(n, 0.0) == pytest.approx(seconds * 0.8)
    assert RetryPolicy().delay(n, 1.0) == pytest.approx(seconds * 1.2)


@given(policies, st.integers(1, 10**400), unit)
def test_wait_stays_within_its_bounds_for_every_n(policy: RetryPolicy, n: int, rand: float) -> None:
    wait = policy.delay(n, rand)
    assert math.isfinite(wait)
    assert policy.base * (1 - policy.jitter) <= wait * (1 + 1e-9)
    assert wait <= policy.cap * (1 + policy.jitter) * (1 + 1e-9)


@given(policies, st.integers(1, 500))
def test_without_jitter_the_wait_never_shrinks(policy: RetryPolicy, n: int) -> None:
    assert policy.delay(n, 0.5) <= policy.delay(n + 1, 0.5)


def test_base_of_zero_retries_at_once() -> None:
    policy = RetryPolicy(base=0, factor=LARGEST_FACTOR)
    assert policy.delay(1, 0.3) == policy.delay(10**9, 0.7) == 0


@pytest.mark.parametrize(
    "settings, field",
    [
        ({"base": -1}, "retry.base"),
        ({"base": math.nan}, "retry.base"),
        ({"base": "1"}, "retry.base"),
        ({"base": True}, "retry.base"),
        ({"cap": math.inf}, "retry.cap"),
        ({"cap": 0.5}, "retry.cap"),
        ({"factor": 0.9}, "retry.factor"),
        ({"base": 10**400}, "retry.base"),
        ({"factor": 10**400}, "retry.factor"),
        ({"factor": LARGEST_FACTOR + 1}, "retry.factor"),
        ({"jitter": 1.1}, "retry.jitter"),
        ({"jitter": -0.1}, "retry.jitter"),
    ],
)
def test_invalid_policy_is_refused(settings: dict[str, float], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        RetryPolicy(**settings)
    assert caught.value.field == field


def test_retry_numbers_start_at_one() -> None:
    with pytest.raises(InvalidInput):
        RetryPolicy().delay(0, 0.5)
