"""One migrated database per module, emptied before every test, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from laneway.client import Client
from laneway.config.settings import Settings
from laneway.store.database import Database
from tests.conftest import Server
from tests.support.database_reset import DatabaseReset
from tests.support.store_client import StoreClient

RESET = """
delete from laneway.jobs; delete from laneway.job_keys; delete from laneway.ready;
delete from laneway.delayed; delete from laneway.lease; delete from laneway.slot_usage;
delete from laneway.outcome; delete from laneway.attempts; delete from laneway.workers;
delete from laneway.unique_periods; delete from laneway.waiting; delete from laneway.links;
delete from laneway.open_edges; delete from laneway.countdowns; delete from laneway.flows;
delete from laneway.flow_tallies; delete from laneway.audit; delete from laneway.kept_results;
delete from laneway.job_types where published_at is not null
"""


@pytest.fixture(scope="module")
def module_dsn(postgres: Server, template_db: str) -> Iterator[str]:
    with postgres.database(template_db) as dsn:
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
def settings(dsn: str) -> Settings:
    return Settings.load(database_url=dsn)


@pytest.fixture
async def client(dsn: str, settings: Settings) -> AsyncIterator[Client]:
    database = Database(dsn, settings)
    client = Client(database, settings)
    yield client
    await client.close()
    await database.close()


@pytest.fixture
def plain_client(dsn: str, settings: Settings) -> Iterator[Client]:
    """A client for tests without an event loop: only its `sync` is used."""
    client = Client(Database(dsn, settings), settings)
    yield client
    client.sync.close()


@pytest.fixture
def db(dsn: str) -> Iterator[StoreClient]:
    """A store client of the same database, as a worker has."""
    with StoreClient(dsn) as db:
        yield db
