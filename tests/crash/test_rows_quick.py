"""A small part of the crash suite: the quickest rows in each run, the others with `-m crash`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.crash.clusters import Clusters
from tests.crash.row import run_row as run_timed
from tests.crash.rows import ROWS

SEED = 1
# Only `make crash`, on an otherwise idle machine, checks bounds in seconds.
run_row = partial(run_timed, is_timed=False)


@pytest.fixture(scope="module")
def clusters() -> Iterator[Clusters]:
    with Clusters.open() as opened:
        yield opened


async def test_superseded_attempt_cannot_complete_job(clusters: Clusters) -> None:
    result = await run_row(ROWS["C2"], clusters, 0.01, SEED, only=("complete",))
    assert result.violations == []
    assert (result.stale_refused, result.stale_accepted) == (10, 0)


async def test_jobs_survive_kill_of_workers(clusters: Clusters) -> None:
    result = await run_row(ROWS["C1"], clusters, 0.1, SEED)
    assert result.violations == []
    assert result.acked_lost == 0


async def test_flows_end_as_without_faults(clusters: Clusters) -> None:
    result = await run_row(ROWS["C32"], clusters, 0.02, SEED)
    assert result.violations == []
    assert result.figures["flow_jobs_wrong"] == 0
    assert result.faults == 4


async def test_waiting_handlers_end_as_without_faults(clusters: Clusters) -> None:
    result = await run_row(ROWS["C33"], clusters, 0.02, SEED)
    assert result.violations == []
    assert result.figures["book_jobs_wrong"] == 0
    assert result.faults == 5


@pytest.mark.crash
async def test_slot_has_one_job_across_leaders(clusters: Clusters) -> None:
    result = await run_row(ROWS["C6"], clusters, 0.01, SEED)
    assert result.violations == []
    assert result.faults == 3
    assert result.stale_refused > 0
    assert (result.figures["slots_doubled"], result.figures["slots_missing"]) == (0, 0)


@pytest.mark.crash
async def test_only_approved_payloads_run(clusters: Clusters) -> None:
    result = await run_row(ROWS["C16"], clusters, 0.01, SEED)
    assert result.violations == []
    assert result.faults > 3
    assert result.figures["decisions"] > 0


@pytest.mark.crash
async def test_killed_workers_release_limits_and_keys(clusters: Clusters) -> None:
    result = await run_row(ROWS["C17"], clusters, 0.01, SEED)
    assert result.violations == []
    assert result.faults >= 4
    assert (result.figures["limits_exceeded"], result.figures["limits_leaked"]) == (0, 0)


@pytest.mark.crash
async def test_few_jobs_do_not_wait_for_many_under_one_limit(clusters: Clusters) -> None:
    result = await run_row(ROWS["C26"], clusters, 0.01, SEED)
    assert result.violations == []
    assert result.faults == 2


@pytest.mark.crash
async def test_rows_and_completion_commit_together(clusters: Clusters) -> None:
    result = await run_row(ROWS["C18"], clusters, 0.01, SEED)
    assert result.violations == []
    assert result.figures["own_transaction_kills"] == 10
    assert result.stale_refused == 6


@pytest.mark.crash
async def test_servers_survive_postgresql_restart(clusters: Clusters) -> None:
    result = await run_row(ROWS["C20"], clusters, 0.1, SEED)
    assert result.violations == []
    assert result.acked_lost == 0


@pytest.mark.crash
async def test_readers_of_killed_server_continue_at_another(clusters: Clusters) -> None:
    result = await run_row(ROWS["C19"], clusters, 0.1, SEED)
    assert result.violations == []
    assert result.figures["stream_gaps"] == 0


async def test_remote_workers_continue_when_replica_is_killed(clusters: Clusters) -> None:
    result = await run_row(ROWS["C21"], clusters, 0.1, SEED)
    assert result.violations == []
    assert result.figures["replica_kills"] == 1
    assert result.figures["replica_lost"] == 0


@pytest.mark.crash
async def test_remote_workers_survive_postgresql_restart(clusters: Clusters) -> None:
    result = await run_row(ROWS["C22"], clusters, 0.1, SEED)
    assert result.violations == []
    assert result.acked_lost == 0


@pytest.mark.crash
async def test_upgrade_under_load_loses_no_job(clusters: Clusters) -> None:
    result = await run_row(ROWS["C23"], clusters, 0.1, SEED)
    assert result.violations == []
    assert result.figures["upgrade_schemas"] == 1


@pytest.mark.crash
async def test_claims_continue_after_lock_holder_went_silent(clusters: Clusters) -> None:
    result = await run_row(ROWS["C27"], clusters, 0.1, SEED)
    assert result.violations == []
    assert result.faults == 5


@pytest.mark.crash
async def test_workers_and_servers_recover_from_silent_network(clusters: Clusters) -> None:
    result = await run_row(ROWS["C28"], clusters, 0.1, SEED)
    assert result.violations == []


@pytest.mark.crash
async def test_schedules_continue_after_frozen_leader(clusters: Clusters) -> None:
    result = await run_row(ROWS["C29"], clusters, 0.1, SEED)
    assert result.violations == []
    assert result.faults == 3


@pytest.mark.crash
async def test_every_end_reaches_readers_across_restore(clusters: Clusters) -> None:
    result = await run_row(ROWS["C30"], clusters, 0.1, SEED)
    assert result.violations == []
    assert result.figures["ends_untold"] == 0


@pytest.mark.crash
async def test_slots_fire_once_when_clock_jumps(clusters: Clusters) -> None:
    result = await run_row(ROWS["C31"], clusters, 0.1, SEED)
    assert result.violations == []
    assert result.faults == 6
