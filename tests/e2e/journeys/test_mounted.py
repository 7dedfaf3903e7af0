"""The dashboard below a path of another application."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e import pages
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.processes import MountedProgram
from tests.e2e.site import Site, new_key


def test_dashboard_works_below_a_path(site: Site, open_as: OpenAs) -> None:
    key = new_key("export")
    job = site.api.submit("export", {"key": key, "steps": 2})
    with MountedProgram(site.dsn, site.folder) as program:
        window = open_as("operator", f"/jobs/{job}", url=program.url)
        page = window.page
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        site.steps.allow(key)
        pages.expect_status(page, "Completed")
        page.get_by_role("link", name="Lanes").click()
        expect(page).to_have_url(f"{program.url}/ui/lanes")
        page.get_by_role("link", name="exports").first.click()
        expect(page).to_have_url(f"{program.url}/ui/lanes/exports")
        page.reload()
        expect(page.get_by_role("heading", level=1, name="exports")).to_be_visible()
        assert window.record.errors == []
