"""The cost of events is flat: a wait reads the events of its key, an event the jobs that wait."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from laneway.domain.claim import Claim
from laneway.store import handler_waits, sent_events
from laneway.store.handler_waits import NewWait
from tests.conftest import Server
from tests.store.test_plans import spent
from tests.support.dead_rows import remove_dead_rows
from tests.support.store_client import StoreClient

pytestmark = pytest.mark.usefixtures("new_sessions")

MANY = 20_000
FILL = """
insert into laneway.sent_events (workspace, name, key, payload, sent_at, expires_at)
select 'default', 'go', {key}, '1', clock_timestamp(), clock_timestamp() + interval '1 day'
  from generate_series(1, {count}) g
"""


@pytest.fixture(scope="module")
def db(postgres: Server, template_db: str) -> Iterator[StoreClient]:
    with postgres.database(template_db) as dsn, StoreClient(dsn, prepare_threshold=0) as db:
        db.do("alter table laneway.sent_events set (autovacuum_enabled = off)")
        db.do("alter table laneway.handler_waits set (autovacuum_enabled = off)")
        yield db


def test_wait_reads_events_of_its_key_whatever_the_statistics(db: StoreClient) -> None:
    # As they are if all events had one key when they were gathered.
    db.do(FILL.format(key="'tick'", count=1000))
    db.do("analyze laneway.sent_events")
    db.do("delete from laneway.sent_events")
    db.do("vacuum laneway.sent_events")
    db.do(FILL.format(key="'other' || g", count=MANY))
    db.do(FILL.format(key="'tick'", count=1))
    # More often than a session needs to keep a plan.
    costs = []
    for _ in range(7):
        claim = db.running()
        costs.append(spent(db, partial(ask, db, claim))["sent_events"])
        db.settle(claim, "finish", result="1")
    assert max(costs) <= 5, costs


def ask(db: StoreClient, claim: Claim) -> None:
    wait = NewWait("go", "event", None, "go", "tick")
    assert db.run(handler_waits.begin(claim, wait)).state == "done"


def test_event_reads_no_wait_of_cancelled_jobs(db: StoreClient) -> None:
    for _ in range(50):
        claim = db.running()
        db.run(handler_waits.begin(claim, NewWait("go", "event", None, "go", "cancelled")))
        db.settle(claim, "wait", result="go")
        db.cancel(claim.seq)
    db.do("select laneway.check_events()")
    remove_dead_rows(db, "handler_waits")
    sent = sent_events.send("go", "cancelled", "1", workspace="default")
    used = spent(db, lambda: db.run(sent))
    assert used["handler_waits"] <= 5
