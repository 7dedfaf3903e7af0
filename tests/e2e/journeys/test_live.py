"""One stream per tab: it survives the server, rests while the tab is hidden, replaces polling."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.e2e import pages
from tests.e2e.browser import Visit
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.processes import ServerProgram
from tests.e2e.screens import await_content
from tests.e2e.site import Site, new_key

_HIDE = """
(isHidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
  document.dispatchEvent(new Event("visibilitychange"));
}
"""
IDLE_MS = 60_000
LISTS = ("/jobs", "/admin/workers/lanes", "/admin/limits", "/admin/audit")


@pytest.fixture
def replica(site: Site) -> Iterator[ServerProgram]:
    """A second server on the same database."""
    with site.another_server() as server:
        yield server


def list_requests(window: Visit) -> list[str]:
    """The reads of lists so far."""
    paths = [each.url.removeprefix(window.url).partition("?")[0] for each in window.record.requests]
    return [path for path in paths if path in LISTS]


def test_lost_stream_tells_the_age_and_recovers(
    site: Site, replica: ServerProgram, open_as: OpenAs
) -> None:
    key = new_key("export")
    job = site.api.submit("export", {"key": key, "steps": 2})
    site.api.await_status(job, "running")
    window = open_as("operator", f"/jobs/{job}", url=replica.url)
    page = window.page
    pages.expect_live(page)
    replica.kill()
    expect(page.get_by_text("reconnecting, data ")).to_be_visible()
    site.steps.allow(key)
    site.api.await_status(job, "completed")
    replica.start()
    pages.expect_live(page)
    pages.expect_status(page, "Completed")


def test_action_on_one_replica_shows_on_the_other(
    site: Site, replica: ServerProgram, open_as: OpenAs
) -> None:
    here = open_as("operator", "/lanes/reports")
    there = open_as("operator", "/lanes/reports", url=replica.url)
    pages.expect_live(there.page)
    pages.press(pages.main(here.page), "Drain")
    expect(there.page.get_by_role("button", name="Resume")).to_be_visible()
    pages.press(pages.main(there.page), "Resume")
    expect(here.page.get_by_role("button", name="Drain")).to_be_visible()


def test_hidden_tab_pauses_the_stream(site: Site, open_as: OpenAs) -> None:
    key = new_key("export")
    job = site.api.submit("export", {"key": key, "steps": 2})
    site.api.await_status(job, "running")
    window = open_as("operator")
    page = window.page
    page.clock.install()
    window.open(f"/jobs/{job}")
    pages.expect_live(page)
    page.evaluate(_HIDE, True)
    page.clock.fast_forward(10_000)
    expect(page.get_by_text("paused")).to_be_visible()
    site.steps.allow(key)
    site.api.await_status(job, "completed")
    page.evaluate(_HIDE, False)
    pages.expect_live(page)
    pages.expect_status(page, "Completed")


def test_idle_page_reads_no_list(site: Site, open_as: OpenAs) -> None:
    window = open_as("platform_admin")
    page = window.page
    page.clock.install()
    for path in ("/", "/jobs", "/lanes", "/limits", "/audit"):
        await_content(window.open(path))
        pages.expect_live(page)
        assert any(stays_silent(window) for _ in range(3)), path


def stays_silent(window: Visit) -> bool:
    """Whether a minute passes without a read; an earlier journey's jobs may still cause one."""
    before = list_requests(window)
    window.page.clock.run_for(IDLE_MS)
    pages.expect_live(window.page)
    return list_requests(window) == before


def test_page_of_deleted_job_says_so_and_stays_live(site: Site, open_as: OpenAs) -> None:
    key = new_key("export")
    site.steps.allow(key)
    job = site.api.submit("export", {"key": key, "steps": 1})
    site.api.await_status(job, "completed")
    page = open_as("operator", f"/jobs/{job}").page
    pages.expect_status(page, "Completed")
    pages.expect_live(page)
    pages.press(page, "Pause live updates")
    site.api.send("DELETE", f"/jobs/{job}")
    pages.press(page, "Resume live updates")
    expect(page.get_by_text("This job was deleted")).to_be_visible()
    pages.expect_live(page)


def test_page_notices_a_deleted_job_without_reconnecting(site: Site, open_as: OpenAs) -> None:
    key = new_key("export")
    site.steps.allow(key)
    job = site.api.submit("export", {"key": key, "steps": 1})
    site.api.await_status(job, "completed")
    window = open_as("operator")
    page = window.page
    page.clock.install()
    window.open(f"/jobs/{job}")
    pages.expect_status(page, "Completed")
    pages.expect_live(page)
    site.api.send("DELETE", f"/jobs/{job}")
    page.clock.run_for(10_000)
    expect(page.get_by_text("This job was deleted")).to_be_visible()
