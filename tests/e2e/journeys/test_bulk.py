"""One action on many jobs."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e import pages
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.site import Site, new_key

# More than the list shows at first.
JOBS = 60


def test_all_matching_jobs_are_cancelled_after_their_count(site: Site, open_as: OpenAs) -> None:
    tag = new_key("tag")
    one = {"job_type": "export", "payload": {"key": "later"}, "delay": 3600, "tags": [tag]}
    site.api.send("POST", "/jobs/batch", {"jobs": [one] * JOBS})
    page = open_as("operator", f"/jobs?tag={tag}").page
    pages.main(page).get_by_role("checkbox", name="Select all loaded jobs").press("Space")
    selected = pages.main(page).get_by_role("region", name="Selected jobs")
    pages.press(selected, "Select all matching")
    pages.press(selected, "Cancel")
    dialog = pages.dialog(page)
    expect(dialog).to_contain_text(f"tag:{tag}")
    pages.press(dialog, f"Cancel {JOBS} jobs")
    expect(dialog.get_by_role("definition").first).to_have_text(str(JOBS))
    pages.press(dialog, "Close")
    counts = site.api.get(f"/jobs/counts?tag={tag}")["items"]
    assert [each["count"] for each in counts if each["status"] == "cancelled"] == [JOBS]
    expect(pages.main(page).get_by_role("row").nth(1)).to_contain_text("Cancelled")


def test_delayed_jobs_of_a_filter_run_now(site: Site, open_as: OpenAs) -> None:
    tag, key = new_key("tag"), new_key("export")
    site.steps.allow(key)
    jobs = [site.api.submit("export", {"key": key}, delay=3600, tags=[tag]) for _ in range(3)]
    page = open_as("operator", f"/jobs?tag={tag}").page
    pages.main(page).get_by_role("checkbox", name="Select all loaded jobs").press("Space")
    selected = pages.main(page).get_by_role("region", name="Selected jobs")
    pages.press(selected, "Run now")
    pages.press(pages.dialog(page), "Run now 3 jobs")
    for job in jobs:
        site.api.await_status(job, "completed")
    pages.press(pages.dialog(page), "Close")
    expect(pages.main(page).get_by_role("row").nth(1)).to_contain_text("Completed")
