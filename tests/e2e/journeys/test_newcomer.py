"""A newcomer's round through the screens: stop a job, retry failures, tune a lane and undo it."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e import pages, waits
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.site import Site, new_key


def go_to(page: Page, screen: str) -> None:
    page.get_by_role("navigation", name="Screens").get_by_role("link", name=screen).click()
    expect(page.get_by_role("heading", level=1, name=screen)).to_be_visible()


def test_round_from_the_overview_to_an_undone_change(site: Site, open_as: OpenAs) -> None:
    job = site.api.submit("export", {"key": new_key("held")})
    site.api.await_status(job, "running")
    key = new_key("file")
    payload = {"key": key, "error": "the disk is full", "kind": "DiskFull"}
    failed = [site.api.submit("import_file", payload) for _ in range(2)]
    for each in failed:
        site.api.await_status(each, "failed")
    page = open_as("operator").page
    stop_on_the_overview(page, site, job)
    retry_on_failures(page, site, key, failed)
    tune_and_undo(page, site)


def stop_on_the_overview(page: Page, site: Site, job: str) -> None:
    short = f"{job[:13]}…{job[-6:]}"
    running = page.get_by_role("table", name="Running jobs").get_by_role("row")
    row = running.filter(has_text=short)
    pages.press(row, "Cancel")
    dialog = pages.dialog(page)
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("started by mistake")
    pages.press(dialog, "Cancel the job")
    expect(dialog).to_have_count(0)
    expect(row).to_have_count(0)
    # What a person copies from the screen finds the job.
    page.get_by_role("searchbox").fill(short)
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site.url}/ui/jobs/{job}")
    pages.expect_status(page, "Cancelled")
    expect(pages.main(page)).to_contain_text("started by mistake")


def retry_on_failures(page: Page, site: Site, key: str, failed: list[str]) -> None:
    go_to(page, "Failures")
    group = pages.main(page).get_by_role("row").filter(has_text="DiskFull").first
    expect(group).to_contain_text("2")
    site.steps.allow(key)
    pages.press(group, "Retry all")
    pages.press(pages.dialog(page), "Retry 2 jobs")
    # The button that was pressed is gone: the focus stays in the dialog.
    close = pages.dialog(page).get_by_role("button", name="Close", exact=True).first
    expect(close).to_be_focused()
    for each in failed:
        site.api.await_status(each, "completed")
    close.press("Enter")
    expect(pages.dialog(page)).to_have_count(0)
    expect(group).to_have_count(0)


def tune_and_undo(page: Page, site: Site) -> None:
    def slots() -> int:
        return int(site.api.get("/admin/workers/lanes/calls")["max_slots"])

    before = slots()
    go_to(page, "Lanes")
    pages.main(page).get_by_role("link", name="calls", exact=True).click()
    field = pages.main(page).get_by_role("textbox", name="Slots")
    field.fill(str(before + 2))
    field.press("Tab")
    expect(pages.main(page)).to_contain_text(f"{before} → {before + 2} slots")
    pages.press(pages.main(page), "Save")
    waits.until(lambda: slots() == before + 2)
    changed = pages.main(page).get_by_role("listitem").filter(has_text="operator").first
    expect(changed).to_contain_text(str(before + 2))
    pages.press(changed, "Undo")
    expect(pages.dialog(page)).to_contain_text("lane calls")
    # Another change meanwhile: the question stays the same, and so does its answer.
    site.api.send("PATCH", "/admin/workers/lanes/calls", {"poll_interval_ms": 300})
    newest = pages.main(page).get_by_text("platform_admin", exact=True)
    expect(newest.first).to_be_attached()
    expect(pages.dialog(page)).to_contain_text("Undo the newest change?")
    pages.press(pages.dialog(page), "Undo")
    expect(pages.dialog(page)).to_have_count(0)
    waits.until(lambda: slots() == before)
    expect(field).to_have_value(str(before))
    # The undo is a change too, and the states before it can be restored.
    expect(pages.main(page).get_by_role("button", name="Restore", exact=True).first).to_be_visible()
