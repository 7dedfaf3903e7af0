"""The garbage collector of worker and server processes."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from laneway.engine.process.collector import OLDER, YOUNG, collect_less_often


@pytest.fixture(autouse=True)
def threshold() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(
    "before, after",
    [
        ((700, 10, 10), (YOUNG, *OLDER)),
        ((0, 5, 5), (0, 5, 5)),
        ((2 * YOUNG, 3, 4), (2 * YOUNG, 3, 4)),
    ],
)
def test_collector_runs_less_often_unless_it_is_off_or_rarer(
    before: tuple[int, int, int], after: tuple[int, int, int]
) -> None:
    gc.set_threshold(*before)
    collect_less_often()
    assert gc.get_threshold() == after
