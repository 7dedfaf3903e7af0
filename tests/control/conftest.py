"""Control verbs run on a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from laneway.config.settings import Settings
from laneway.store.database import Database


@pytest.fixture
async def db(dsn: str) -> AsyncIterator[Database]:
    database = Database(dsn, Settings.load(database_url=dsn), role="tests control")
    yield database
    await database.close()
