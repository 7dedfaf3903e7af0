"""The runner of hostile requests counts one whole try per case."""

from __future__ import annotations

from tests.abuse.run import Cost, typical


def test_case_counts_by_its_median_try_and_the_memory_of_the_first() -> None:
    tries = [Cost(900.0, 0.1, 80.0, 40.0), Cost(10.0, 3.0, 1.0, 0.0), Cost(400.0, 0.2, 2.0, 0.0)]
    assert typical(tries) == Cost(400.0, 0.2, 80.0, 40.0)
    assert typical(tries[:1]) == tries[0]
