"""Control verbs run on a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from laneway.config.settings import Settings
from laneway.store.database import Database
from tests.control.scene import Scene


@pytest.fixture
def scene(dsn: str) -> Iterator[Scene]:
    with psycopg.connect(dsn, autocommit=True, application_name="tests") as conn:
        yield Scene(conn)


@pytest.fixture
async def db(dsn: str) -> AsyncIterator[Database]:
    database = Database(dsn, Settings.load(database_url=dsn), role="tests control")
    yield database
    await database.close()
