"""Notices for what cannot be read, loaded or found."""

from __future__ import annotations

from playwright.sync_api import Route, expect

from tests.e2e import pages
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.site import Site

PROBLEM = '{"title": "Busy", "status": 503, "code": "busy", "detail": "the figures are busy"}'


def test_overview_says_that_figures_are_missing(site: Site, open_as: OpenAs) -> None:
    site.api.submit("export", {"key": "later"}, delay=3600)
    page = open_as("platform_admin", "/jobs").page

    def refuse(route: Route) -> None:
        route.fulfill(status=503, content_type="application/problem+json", body=PROBLEM)

    page.route("**/admin/stats*", refuse)
    page.goto(f"{site.url}/ui/")
    expect(pages.main(page)).to_contain_text("the figures are busy")
    charts = pages.main(page).get_by_role("region", name="Charts")
    expect(charts.get_by_text("The figures could not be read")).to_have_count(3)
    lane = pages.main(page).get_by_role("row").filter(has_text="exports").first
    # Not "0": the rate is unknown.
    expect(lane.get_by_role("cell").nth(3)).to_have_text("—")
    page.unroute("**/admin/stats*")
    pages.press(pages.main(page), "Try again")
    expect(charts).not_to_contain_text("could not be read")
    expect(pages.main(page)).not_to_contain_text("the figures are busy")


def test_screen_whose_code_is_missing_says_so(site: Site, open_as: OpenAs) -> None:
    page = open_as("platform_admin", "/jobs").page
    expect(page.get_by_role("heading", level=1, name="Jobs")).to_be_visible()
    page.route("**/ui/assets/**", lambda route: route.abort())
    page.get_by_role("navigation").get_by_role("link", name="Schedules").click()
    expect(pages.main(page)).to_contain_text("This screen could not be loaded")
    page.unroute("**/ui/assets/**")
    pages.press(pages.main(page), "Reload the page")
    expect(page.get_by_role("heading", level=1, name="Schedules")).to_be_visible()


def test_unknown_address_is_not_called_forbidden(site: Site, open_as: OpenAs) -> None:
    page = open_as("platform_admin", "/approvals/decided").page
    expect(page.get_by_text("Nothing is shown at this address")).to_be_visible()
    pages.main(page).get_by_role("link", name="Approvals").click()
    expect(page.get_by_role("heading", level=1, name="Approvals")).to_be_visible()
    page = open_as("viewer", "/audit").page
    expect(page.get_by_text("You may not see this page")).to_be_visible()
