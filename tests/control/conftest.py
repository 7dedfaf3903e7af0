"""Control verbs run on a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from laneway.config.settings import Settings
from laneway.store.database import Database
from tests.support.job_factory import JobFactory


@pytest.fixture
def factory(dsn: str) -> Iterator[JobFactory]:
    with psycopg.connect(dsn, autocommit=True, application_name="tests") as conn:
        yield JobFactory(conn)


@pytest.fixture
async def db(dsn: str) -> AsyncIterator[Database]:
    database = Database(dsn, Settings.load(database_url=dsn), role="tests control")
    yield database
    await database.close()
