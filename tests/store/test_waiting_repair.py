"""Waiting jobs of tables that were truncated or restored in part are found and released."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from laneway.config.settings import Settings
from laneway.control import repair, waiting_health
from laneway.control.health_check import Finding
from laneway.domain.claim import Claim
from laneway.store import edges, handler_waits, leases, sent_events
from laneway.store import health as store
from laneway.store.database import Database
from laneway.store.edges import MendedWaits
from laneway.store.retention import LeaderTerm
from tests.store.edges import Edges
from tests.store.test_durable_waits import EVENT, claim_part, entries, look, run_all
from tests.support.store_client import StoreClient


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    database = Database(dsn, Settings.load(database_url=dsn), role="tests repair")
    yield database
    await database.close()


@pytest.fixture
def flow(db: StoreClient) -> Edges:
    return Edges(db)


def mend(db: StoreClient, after: int = 0, look: int = 100) -> MendedWaits:
    epoch = db.run(leases.run_watchdog(db.worker, 600)).epoch
    assert epoch is not None
    return db.run(edges.mend_waits(LeaderTerm(db.worker, epoch), after, look))


def stuck(db: StoreClient) -> list[int]:
    return [db.seq_of(one) for one in db.run(store.find_stuck_waits(look=1000)).ids]


@pytest.mark.parametrize(
    "harm",
    [
        "delete from laneway.countdowns",
        "delete from laneway.open_edges",
        "delete from laneway.open_edges; delete from laneway.countdowns",
        "update laneway.countdowns set missing = 7",
        "update laneway.countdowns set missing = 1",
    ],
)
def test_job_waits_again_for_exactly_those_it_comes_after(
    db: StoreClient, flow: Edges, harm: str
) -> None:
    done, first, second = db.submit(), db.submit(), db.submit()
    child = flow.submit(after=[done, first, second])
    flow.end(done)
    for each in harm.split("; "):
        db.do(each)
    assert stuck(db) == [child]
    assert mend(db) == (1, None, [])
    assert stuck(db) == []
    flow.end(first)
    assert flow.status(child) == "waiting"
    flow.end(second)
    assert flow.status(child) == "approved"
    assert flow.are_consistent()


@pytest.mark.parametrize("harm", ["arrivals", "open_edges", "countdowns"])
def test_job_whose_last_parent_ended_unnoticed_starts(
    db: StoreClient, flow: Edges, harm: str
) -> None:
    parent = db.submit()
    child = flow.submit(after=[parent])
    _end_unnoticed(db, flow, parent)
    db.do(f"delete from laneway.{harm}")
    if harm != "arrivals":
        db.do("delete from laneway.arrivals")
    assert stuck(db) == [child]
    assert mend(db).mended == 1
    flow.advance()
    assert flow.status(child) == "approved"
    assert flow.are_consistent()


def test_job_after_one_that_failed_unnoticed_is_cancelled(db: StoreClient, flow: Edges) -> None:
    parent = db.submit(max_retries=0)
    cancelled = flow.submit(after=[parent])
    held = flow.submit(after=[parent], after_failure="hold")
    _end_unnoticed(db, flow, parent, "fail")
    db.do("delete from laneway.arrivals")
    assert stuck(db) == [cancelled]
    assert mend(db).mended == 1
    flow.advance()
    assert (flow.status(cancelled), flow.status(held)) == ("cancelled", "waiting")
    assert stuck(db) == []


def _end_unnoticed(db: StoreClient, flow: Edges, seq: int, kind: str = "finish") -> None:
    """Ends a job so that its edges are left to an arrival."""
    claim = flow.claim_of(seq)
    db.begin()
    db.do("set transaction isolation level repeatable read")
    flow.settle([claim], kind)
    db.commit()
    assert flow.arrivals()


@pytest.mark.parametrize("harm", ["countdowns", "open_edges"])
def test_owner_waits_again_for_its_sub_jobs(db: StoreClient, flow: Edges, harm: str) -> None:
    owner = db.running()
    run_all(db, owner, entries(2))
    db.settle(owner, "wait", result="parts")
    db.do(f"delete from laneway.{harm}")
    assert stuck(db) == [owner.seq]
    assert mend(db).mended == 1
    db.settle(claim_part(db), "finish")
    assert flow.status(owner.seq) == "waiting"
    db.settle(claim_part(db), "finish")
    assert flow.status(owner.seq) == "approved"


@pytest.mark.parametrize(
    "harm",
    ["delete from laneway.handler_waits", "update laneway.handler_waits set done_at = now()"],
)
def test_handler_whose_wait_was_lost_asks_again(db: StoreClient, flow: Edges, harm: str) -> None:
    claim = _waits_for_event(db)
    db.do(harm)
    assert stuck(db) == [claim.seq]
    assert mend(db) == (1, None, ["t"])
    assert flow.status(claim.seq) == "approved"


def test_event_whose_look_was_lost_is_delivered(db: StoreClient, flow: Edges) -> None:
    claim = _waits_for_event(db)
    db.begin()
    db.do("set transaction isolation level repeatable read")
    db.run(sent_events.send("go", "k", "1", workspace="default"))
    db.commit()
    assert stuck(db) == []
    db.do("delete from laneway.event_checks")
    assert stuck(db) == [claim.seq]
    assert mend(db) == (1, None, ["t"])
    assert db.row("handler_waits", claim.seq)["result"] == 1


def _waits_for_event(db: StoreClient) -> Claim:
    claim = db.running()
    db.run(handler_waits.begin(claim, EVENT))
    db.settle(claim, "wait", result="go")
    look(db)
    return claim


def test_waiting_jobs_that_are_well_are_left_alone(db: StoreClient, flow: Edges) -> None:
    _waits_for_event(db)
    parent = db.submit(max_retries=0)
    children = [flow.submit(after=[parent], after_failure=rule) for rule in ("hold", "cancel")]
    flow.end(parent, kind="fail")
    assert [flow.status(one) for one in children] == ["waiting", "cancelled"]
    later = flow.submit(after=[db.submit(), db.submit()])
    assert stuck(db) == []
    assert mend(db) == (0, None, [])
    assert flow.status(later) == "waiting"


def test_retried_job_waits_for_its_failed_parent_to_be_retried(
    db: StoreClient, flow: Edges
) -> None:
    """However long the operator takes: nothing was lost."""
    parent = db.submit()
    child = flow.submit(after=[parent])
    flow.end(parent, kind="giveup")
    assert flow.status(child) == "cancelled"
    db.retry(child)
    assert stuck(db) == []
    assert mend(db).mended == 0
    flow.advance()
    assert flow.status(child) == "waiting"
    db.retry(parent)
    flow.end(parent)
    assert flow.status(child) == "approved"


def test_repair_of_a_retried_job_leaves_it_waiting(db: StoreClient, flow: Edges) -> None:
    parent = db.submit()
    child = flow.submit(after=[parent])
    flow.end(parent, kind="giveup")
    db.retry(child)
    db.do("delete from laneway.countdowns")
    assert mend(db).mended == 1
    flow.advance()
    assert flow.status(child) == "waiting"
    assert flow.are_consistent()


def test_only_the_leader_releases_waiting_jobs(db: StoreClient, flow: Edges) -> None:
    flow.submit(after=[db.submit()])
    db.do("delete from laneway.countdowns")
    assert db.run(edges.mend_waits(LeaderTerm(db.worker, 1), 0)).mended == 0
    assert not flow.are_consistent()


def test_check_of_waiting_jobs_goes_on_where_it_stopped(db: StoreClient, flow: Edges) -> None:
    children = [flow.submit(after=[db.submit()]) for _ in range(5)]
    db.do("delete from laneway.countdowns")
    assert mend(db, look=3) == (3, children[2], [])
    assert mend(db, children[2], look=3) == (2, None, [])
    assert flow.are_consistent()


def test_locked_waiting_job_is_left_to_the_next_check(
    db: StoreClient, other: StoreClient, flow: Edges
) -> None:
    child = flow.submit(after=[db.submit()])
    db.do("delete from laneway.countdowns")
    other.begin()
    other.do("select from laneway.waiting where seq = %s for update", child)
    assert mend(db).mended == 0
    other.commit()
    assert mend(db).mended == 1


async def test_doctor_finds_stuck_waits_and_repair_ends_them(
    database: Database, db: StoreClient, flow: Edges
) -> None:
    assert (await waiting_health.check_waits(database)).finding is Finding.OK
    child = flow.submit(after=[db.submit()])
    db.do("delete from laneway.countdowns")
    check = await waiting_health.check_waits(database)
    assert (check.finding, check.next) == (Finding.FAIL, "laneway db repair")
    assert f"the first is {db.id_of(child)}" in check.message
    assert await repair.repair(database, by="ann") == (0, 0, 1)
    assert db.one("select after from laneway.audit where kind = 'database'") == {"waits": 1}
    assert (await waiting_health.check_waits(database)).finding is Finding.OK
    assert await repair.repair(database, by="ann") == (0, 0, 0)


async def test_doctor_names_jobs_that_need_a_person(
    database: Database, db: StoreClient, flow: Edges
) -> None:
    parent = db.submit()
    child = flow.submit(after=[parent], after_failure="hold")
    assert (await waiting_health.check_waits(database)).finding is Finding.OK
    flow.end(parent, kind="giveup")
    check = await waiting_health.check_waits(database)
    assert check.finding is Finding.WARN
    assert "1 job waits until a job that failed or was cancelled is retried" in check.message
    assert f"the first is {db.id_of(child)}, after {db.id_of(parent)}" in check.message
    assert check.next == f"laneway jobs retry {db.id_of(parent)}"
    # Its handler decides.
    db.retry(parent)
    assert (await waiting_health.check_waits(database)).finding is Finding.OK


async def test_repair_ends_lost_parent_and_follows_its_edges(
    database: Database, db: StoreClient, flow: Edges
) -> None:
    parent = db.submit()
    child = flow.submit(after=[parent])
    db.do("delete from laneway.ready")
    db.do("delete from laneway.countdowns")
    assert await repair.repair(database, by="ann") == (0, 1, 1)
    flow.advance()
    assert flow.status(child) == "cancelled"


async def test_doctor_names_event_that_has_not_come_for_long(
    database: Database, db: StoreClient
) -> None:
    claim = _waits_for_event(db)
    db.do("update laneway.waiting set since = since - interval '8 days'")
    check = await waiting_health.check_waits(database)
    job_id = db.id_of(claim.seq)
    assert check.finding is Finding.WARN
    assert f"job {job_id} has waited for an event for over 7 days" in check.message
    assert check.next == f"laneway jobs explain {job_id}"
