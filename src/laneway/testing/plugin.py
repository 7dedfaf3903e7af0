"""The pytest plugin, loaded by its entry point wherever laneway is installed.

It imports next to nothing of Laneway until a test requests a fixture: other suites pay nothing.

`laneway_app`          the application under test, on an empty test database
`laneway_database`     the DSN of that database, one per process
`laneway_drill`        the application on a recorded database, and its workers as processes
`laneway_application`  the application before that: the option `laneway_app`, or your own fixture
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from laneway.app import open_guard

if TYPE_CHECKING:
    from laneway import Laneway
    from laneway.testing.drill import Drill
    from laneway.testing.scratch_database import ScratchDatabase

OPTION = "laneway_app"
# The applications that fixtures returned.
_APPLICATIONS = pytest.StashKey[list["Laneway"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(OPTION, "Laneway application under test, as module:name", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse that the application under test opens any database but that of a test."""
    module_name, _, name = str(config.getini(OPTION)).partition(":")

    def check(app: object) -> None:
        found: object = sys.modules.get(module_name)
        for part in (name or "lw").split("."):
            found = getattr(found, part, None)
        if app is found or any(app is one for one in config.stash[_APPLICATIONS]):
            from laneway.testing.bound_app import check_bound

            check_bound(app)

    config.stash[_APPLICATIONS] = []
    config.add_cleanup(open_guard.add(check))


@pytest.fixture(scope="session")
def laneway_scratch_database() -> Iterator[ScratchDatabase]:
    """The database of this test process, with its clock; each xdist worker has its own."""
    from laneway.testing.scratch_database import open_scratch_database

    with open_scratch_database() as database:
        yield database


@pytest.fixture(scope="session")
def laneway_database(laneway_scratch_database: ScratchDatabase) -> str:
    """The DSN of the database of this test process, for your own connections."""
    return laneway_scratch_database.dsn


@pytest.fixture(scope="session")
def laneway_application(pytestconfig: pytest.Config) -> Laneway:
    """The application under test; override it where `module:name` is not enough."""
    reference = str(pytestconfig.getini(OPTION))
    if not reference:
        raise pytest.UsageError(
            f'the fixture laneway_app needs an application: set {OPTION} = "module:name" in the'
            " pytest configuration, or override the fixture laneway_application"
        )
    from laneway.app.loader import load_app

    if str(pytestconfig.rootpath) not in sys.path:
        sys.path.insert(0, str(pytestconfig.rootpath))
    return load_app(reference)


@pytest.fixture
def laneway_app(
    laneway_application: Laneway,
    laneway_scratch_database: ScratchDatabase,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> Iterator[Laneway]:
    """The application on an empty database, whose clock stands still; until the test ends."""
    from laneway.testing.bound_app import bind

    pytestconfig.stash[_APPLICATIONS].append(laneway_application)
    # For processes that the test starts.
    monkeypatch.setenv("LANEWAY_DATABASE_URL", laneway_scratch_database.dsn)
    with bind(laneway_application, laneway_scratch_database):
        yield laneway_application


@pytest.fixture
def laneway_drill(laneway_application: Laneway, pytestconfig: pytest.Config) -> Iterator[Drill]:
    """A crash drill: real workers of the application of the option `laneway_app`."""
    reference = str(pytestconfig.getini(OPTION))
    if not reference:
        raise pytest.UsageError(
            f'the fixture laneway_drill starts workers: set {OPTION} = "module:name" in the pytest'
            " configuration"
        )
    from laneway.testing.drill import drill

    with drill(laneway_application, reference) as run:
        yield run
