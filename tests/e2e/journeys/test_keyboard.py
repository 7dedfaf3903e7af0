"""The dashboard without a mouse."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e import pages
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.site import Site, new_key

SCREENS = {
    "l": "Lanes", "j": "Jobs", "f": "Failures", "a": "Approvals", "s": "Schedules",
    "w": "Workers", "o": "Overview",
}  # fmt: skip


def test_keys_go_to_screens_search_and_help(site: Site, open_as: OpenAs) -> None:
    page = open_as("platform_admin").page
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for key, name in SCREENS.items():
        pages.press_sequence(page, "g", key)
        expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(pages.dialog(page)).to_have_count(0)
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("gj?")
    expect(page.get_by_role("searchbox")).to_have_value("gj?")
    expect(pages.dialog(page)).to_have_count(0)


def test_keys_move_select_and_open_jobs(site: Site, open_as: OpenAs) -> None:
    tag = new_key("tag")
    jobs = [site.api.submit("export", {"key": "later"}, delay=3600, tags=[tag]) for _ in range(3)]
    page = open_as("operator", f"/jobs?tag={tag}").page
    rows = pages.main(page).get_by_role("row")
    expect(rows).to_have_count(4)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(pages.main(page).get_by_text("1 selected")).to_be_visible()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    # The newest is the first row.
    expect(page).to_have_url(f"{site.url}/ui/jobs/{jobs[2]}")
