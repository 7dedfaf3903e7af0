"""The plugin under test, on the server of this suite, with the application of library_app.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from laneway import Laneway
from laneway.testing import clock, run_due
from laneway.testing.scratch_database import VARIABLE, ScratchDatabase, open_scratch_database
from tests.testing import library_app

if TYPE_CHECKING:
    from tests.conftest import Server


@pytest.fixture(scope="session")
def laneway_scratch_database(postgres: Server) -> Iterator[ScratchDatabase]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, postgres.dsn)
        with open_scratch_database() as database:
            yield database


@pytest.fixture(scope="session")
def laneway_application() -> Laneway:
    return library_app.lw


@pytest.fixture(autouse=True)
def forget_calls() -> None:
    library_app.calls.clear()


@pytest.fixture
def between_schedules(laneway_app: Laneway) -> None:
    """Start at an hour of the day when no schedule of the application is near."""
    now = clock.now()
    if now.hour < 3:
        clock.set(now.replace(hour=3, minute=1))
        run_due()
        library_app.calls.clear()
