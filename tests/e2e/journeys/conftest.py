"""One server, worker and browser for all journeys; every journey has its own window.

`site`      the server, its database, people and requests
`chromium`  the browser
`open_as`   a signed-in window: `visit = open_as("operator")`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, expect

from tests.conftest import Server
from tests.e2e.browser import PATIENCE_MS, WIDE, Theme, Visit, run_chromium, visit
from tests.e2e.site import Site, run_site

OpenAs = Callable[..., Visit]
expect.set_options(timeout=PATIENCE_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "journeys" in item.path.parts:
            item.add_marker("browser")


@pytest.fixture(autouse=True)
def leaks_nothing() -> None:
    """Server, worker and browser live for the whole run; Chromium keeps processes in reserve."""


@pytest.fixture(scope="session")
def site(postgres: Server, template_db: str) -> Iterator[Site]:
    with postgres.database(template_db) as dsn, run_site(dsn) as site:
        yield site


@pytest.fixture(autouse=True)
def slots_are_free(site: Site) -> Iterator[None]:
    """Let handlers that a journey held go on, so that they keep no slot from the next ones."""
    yield
    held = site.conn.execute(
        "select payload ->> 'key' from laneway.jobs_view"
        " where status in ('approved', 'running') and payload ->> 'key' ~ '-[0-9a-f]{8}$'"
    )
    for (key,) in held.fetchall():
        site.steps.allow(key)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with run_chromium() as browser:
        yield browser


@pytest.fixture
def open_as(site: Site, chromium: Browser) -> Iterator[OpenAs]:
    """Open windows that are signed in by a one-time link."""
    with ExitStack() as stack:

        def open_window(
            role: str,
            path: str = "/",
            *,
            url: str = "",
            theme: Theme = "light",
            size: tuple[int, int] = WIDE,
        ) -> Visit:
            window = stack.enter_context(visit(chromium, url or site.url, theme=theme, size=size))
            window.sign_in(site.link(role, url))
            window.open(path)
            return window

        yield open_window
