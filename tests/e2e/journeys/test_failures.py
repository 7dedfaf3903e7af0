"""Failures, grouped by their error."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e import pages
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.site import Site, new_key


def test_all_failures_of_one_error_are_retried(site: Site, open_as: OpenAs) -> None:
    key = new_key("file")
    payload = {"key": key, "error": "the partner is closed", "kind": "PartnerClosed"}
    jobs = [site.api.submit("import_file", payload) for _ in range(3)]
    for job in jobs:
        site.api.await_status(job, "failed")
    # Submitted before the window, failed in it.
    site.conn.execute(
        "update laneway.jobs set created_at = now() - interval '2 days' where id = %s", [jobs[0]]
    )
    page = open_as("operator", "/failures").page
    group = pages.main(page).get_by_role("row").filter(has_text="PartnerClosed").first
    expect(group).to_contain_text("import_file")
    site.steps.allow(key)
    pages.press(group, "Retry")
    expect(pages.dialog(page)).to_contain_text("3 jobs")
    # Only what the page shows: this lane, and this window.
    expect(pages.dialog(page)).to_contain_text("lane:")
    expect(pages.dialog(page)).to_contain_text("ended_since:1h")
    pages.press(pages.dialog(page), "Retry")
    for job in jobs:
        site.api.await_status(job, "completed")
    expect(pages.dialog(page)).to_contain_text("3")
    pages.press(pages.dialog(page), "Close")
    expect(group).to_have_count(0)


def test_failures_of_one_error_are_grouped_by_message(site: Site, open_as: OpenAs) -> None:
    key = new_key("file")
    messages = ["page 7 of 'a.pdf' is empty", "page 12 of 'b.pdf' is empty", "no such bucket"]
    jobs = [
        site.api.submit("import_file", {"key": key, "error": each, "kind": "BadUpload"})
        for each in messages
    ]
    for job in jobs:
        site.api.await_status(job, "failed")
    page = open_as("operator", "/failures").page
    group = pages.main(page).get_by_role("row").filter(has_text="BadUpload").first
    pages.press(group, "Show messages")
    found = pages.main(page).get_by_role("table").get_by_role("listitem")
    expect(found.first).to_contain_text("page <n> of '…' is empty")
    expect(found).to_have_count(2)
    site.steps.allow(key)
    pages.press(found.first, "Retry 2")
    pages.press(pages.dialog(page), "Retry 2")
    for job in jobs[:2]:
        site.api.await_status(job, "completed")
    assert site.api.get(f"/jobs/{jobs[2]}")["status"] == "failed"
