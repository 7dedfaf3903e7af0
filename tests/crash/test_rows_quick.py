"""A taste of the crash suite in every test run; `make crash` has the rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.clusters import Clusters
from tests.crash.play import play_row
from tests.crash.rows import ROWS

SEED = 1


@pytest.fixture(scope="module")
def clusters() -> Iterator[Clusters]:
    with Clusters.open() as opened:
        yield opened


async def test_a_superseded_attempt_cannot_complete_its_job(clusters: Clusters) -> None:
    result = await play_row(ROWS["C2"], clusters, 0.01, SEED, only=("complete",))
    assert result.violations == []
    assert (result.stale_refused, result.stale_accepted) == (10, 0)


async def test_jobs_survive_the_kill_of_their_workers(clusters: Clusters) -> None:
    result = await play_row(ROWS["C1"], clusters, 0.1, SEED)
    assert result.violations == []
    assert result.acked_lost == 0
