"""One migrated database per module, emptied before every test: a clone each would take a minute."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.conftest import Server
from tests.support.database_reset import DatabaseReset
from tests.support.kept_sessions import shared as kept_sessions
from tests.support.store_client import StoreClient

RESET = """
delete from laneway.jobs; delete from laneway.job_keys; delete from laneway.ready;
delete from laneway.delayed; delete from laneway.lease; delete from laneway.slot_usage;
delete from laneway.outcome; delete from laneway.attempts; delete from laneway.progress;
delete from laneway.logs; delete from laneway.deadlines; delete from laneway.awaiting;
delete from laneway.approvals; delete from laneway.decisions; delete from laneway.steps;
delete from laneway.key_holders; delete from laneway.key_waiters; delete from laneway.self_finished;
delete from laneway.suspects; delete from laneway.waiting; delete from laneway.links;
delete from laneway.open_edges; delete from laneway.countdowns; delete from laneway.arrivals;
delete from laneway.handler_waits; delete from laneway.sent_events;
delete from laneway.event_checks;
delete from laneway.flows; delete from laneway.flow_tallies; delete from laneway.kept_results;
delete from laneway.queued_by; delete from laneway.queue_usage;
delete from laneway.unpublished_types;
delete from laneway.limit_usage; delete from laneway.limit_starts;
delete from laneway.limit_waiters; delete from laneway.limit_holds;
delete from laneway.call_holds;
delete from laneway.type_publishers; delete from laneway.end_hooks; delete from laneway.webhooks;
delete from laneway.watches; delete from laneway.events; delete from laneway.event_log;
insert into laneway.event_log default values;
delete from laneway.limits where name not in ('anthropic', 'ollama', 'openai');
delete from laneway.schedule_slots; delete from laneway.workers; delete from laneway.leader;
delete from laneway.job_types; insert into laneway.job_types select * from seed_types;
update laneway.control
   set paused = false, paused_by = null, paused_at = null, has_webhooks = false;
begin;
update laneway.worker_lanes set job_types = '{}';
delete from laneway.worker_lanes where name not in ('default', 'analysis');
insert into laneway.worker_lanes
select * from seed_lanes where name not in ('default', 'analysis');
update laneway.worker_lanes
   set (max_slots, poll_interval_ms, stale_timeout_minutes, lease_seconds, enabled)
     = (select max_slots, poll_interval_ms, stale_timeout_minutes, lease_seconds, enabled
          from seed_lanes s where s.name = worker_lanes.name)
 where name in ('default', 'analysis');
commit
"""


@pytest.fixture(scope="module")
def module_dsn(postgres: Server, template_db: str) -> Iterator[str]:
    with postgres.database(template_db) as dsn:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("create table seed_lanes as select * from laneway.worker_lanes")
            conn.execute("create table seed_types as select * from laneway.job_types")
        with kept_sessions.of(dsn):
            yield dsn


@pytest.fixture(scope="module")
def database_reset(module_dsn: str) -> Iterator[DatabaseReset]:
    with DatabaseReset(module_dsn, RESET) as database_reset:
        yield database_reset


@pytest.fixture
def dsn(module_dsn: str, database_reset: DatabaseReset) -> str:
    database_reset.run()
    return module_dsn


@pytest.fixture
def db(dsn: str) -> Iterator[StoreClient]:
    with StoreClient(dsn) as db:
        yield db


@pytest.fixture
def another(dsn: str) -> Iterator[Callable[[], StoreClient]]:
    """A function that opens further clients of the same database."""
    opened: list[StoreClient] = []

    def open_client() -> StoreClient:
        opened.append(StoreClient(dsn))
        return opened[-1]

    yield open_client
    for db in opened:
        db.close()


@pytest.fixture
def other(another: Callable[[], StoreClient]) -> StoreClient:
    return another()
