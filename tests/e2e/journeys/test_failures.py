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
    page = open_as("operator", "/failures").page
    group = pages.main(page).get_by_role("row").filter(has_text="PartnerClosed").first
    expect(group).to_contain_text("import_file")
    site.steps.allow(key)
    pages.press(group, "Retry")
    expect(pages.dialog(page)).to_contain_text("3 jobs")
    pages.press(pages.dialog(page), "Retry")
    for job in jobs:
        site.api.await_status(job, "completed")
    expect(pages.dialog(page)).to_contain_text("3")
    pages.press(pages.dialog(page), "Close")
    expect(group).to_have_count(0)
