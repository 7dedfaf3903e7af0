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


def test_flow_works_below_a_path(site: Site, open_as: OpenAs) -> None:
    name, first, last = new_key("nightly"), new_key("extract"), new_key("load")
    jobs = [
        {"name": "extract", "job_type": "export", "payload": {"key": first, "steps": 1}},
        {
            "name": "load", "job_type": "export", "payload": {"key": last, "steps": 1},
            "after": ["extract"],
        },
    ]  # fmt: skip
    flow = site.api.send("POST", "/flows", {"name": name, "jobs": jobs})["id"]
    with MountedProgram(site.dsn, site.folder) as program:
        window = open_as("operator", "/flows", url=program.url)
        page = window.page
        pages.main(page).get_by_role("link", name=name).first.click()
        expect(page).to_have_url(f"{program.url}/ui/flows/{flow}")
        pages.expect_live(page)
        site.steps.allow(first)
        graph = page.get_by_role("region", name="Graph of the flow")
        expect(graph.get_by_role("listitem").filter(has_text="load")).to_contain_text("running")
        page.get_by_role("link", name="Timeline").click()
        page.reload()
        expect(page.get_by_role("region", name="Timeline of the flow")).to_contain_text("load")
        pages.press(pages.main(page), "Cancel")
        pages.press(pages.dialog(page), "Cancel 1 job")
        pages.expect_status(page, "Cancelled")
        assert window.record.errors == []
