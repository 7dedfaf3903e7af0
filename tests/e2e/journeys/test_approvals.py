"""A job that needs approval, from its submit to its end."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.e2e import pages, waits
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.site import Site, new_key


def job_with(site: Site, key: str) -> str | None:
    """The job with this key in its payload."""
    found = site.api.get("/jobs?job_type=report&limit=200")["items"]
    return next((each["id"] for each in found if each["payload"]["key"] == key), None)


def open_card(page: Page, job: str) -> Locator:
    """The request of a job, opened: the oldest is open already."""
    card = page.get_by_role("article", name=f"{job[:13]}…{job[-6:]}")
    line = card.get_by_role("heading").get_by_role("button")
    expect(line).to_be_visible()
    if line.get_attribute("aria-expanded") == "false":
        line.click()
    return card


def test_submitted_job_is_approved_watched_and_completes(site: Site, open_as: OpenAs) -> None:
    key = new_key("report")
    page = open_as("operator", "/jobs").page
    pages.press(pages.main(page), "New job")
    dialog = pages.dialog(page)
    job_type = dialog.get_by_role("combobox", name="Job type")
    job_type.fill("report")
    # Closes the list of suggestions, which hides the other fields.
    job_type.press("Tab")
    dialog.get_by_label(pages.named("key")).fill(key)
    dialog.get_by_label(pages.named("year")).fill("2031")
    pages.press(dialog, "Submit job")
    expect(dialog).to_have_count(0)
    job = waits.until(lambda: job_with(site, key))
    window = open_as("approver", "/approvals")
    page = window.page
    card = open_card(page, job)
    expect(card).to_contain_text("2.5")
    expect(card).to_contain_text("EUR")
    expect(card).to_contain_text("2031")
    expect(card).to_contain_text("takes all connections of the warehouse")
    card.get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog").or_(page.get_by_role("alertdialog"))
    dialog.get_by_label("Comment").fill("within the budget")
    dialog.get_by_role("button", name="Approve").click()
    expect(card).to_have_count(0)
    window.open(f"/jobs/{job}")
    site.steps.allow(key, 2)
    expect(page.get_by_text("chapter 2 of 4").first).to_be_visible()
    expect(page.get_by_role("progressbar").first).to_have_attribute("aria-valuenow", "50")
    site.steps.allow(key)
    pages.expect_status(page, "Completed")
    expect(page.get_by_role("main")).to_contain_text("within the budget")


def test_submitter_cannot_approve_a_two_person_job(site: Site, open_as: OpenAs) -> None:
    account = new_key("account")
    job = site.api.submit("payout", {"account": account, "cents": 100})
    own = open_as("platform_admin", "/approvals")
    card = open_card(own.page, job)
    expect(card).to_contain_text("another person")
    expect(card.get_by_role("button", name="Approve", disabled=False)).to_have_count(0)
    other = open_as("approver", "/approvals")
    card = open_card(other.page, job)
    expect(card.get_by_role("button", name="Approve", disabled=False)).to_be_visible()


def test_cost_is_shown_wherever_a_job_is_approved(site: Site, open_as: OpenAs) -> None:
    job, other = (site.api.submit("report", {"key": new_key("report")}) for _ in range(2))
    for each in (job, other):
        site.api.await_status(each, "awaiting_approval")
    window = open_as("approver", f"/jobs/{job}")
    page = window.page
    card = pages.main(page).get_by_role("region", name="Why it is not running")
    expect(card).to_contain_text("2.50 EUR")
    expect(card).to_contain_text("takes all connections of the warehouse")
    pages.press(pages.main(page), "Approve")
    expect(pages.dialog(page)).to_contain_text("2.50 EUR")
    expect(pages.dialog(page)).to_contain_text("takes all connections of the warehouse")
    pages.press(pages.dialog(page), "Not now")
    window.open("/approvals")
    open_card(page, job)
    waiting = site.api.get("/jobs?status=awaiting_approval&job_type=report&limit=200")["items"]
    pages.press(pages.main(page), "Approve all of one type")
    page.get_by_role("menuitem", name="report").click()
    total = re.compile(rf"cost {2.5 * len(waiting):,.2f} EUR in all".replace(".00", r"(\.00)?"))
    expect(pages.dialog(page)).to_contain_text(total)
    pages.press(pages.dialog(page), "Keep as they are")


def test_rejection_needs_a_reason_and_shows_it(site: Site, open_as: OpenAs) -> None:
    key = new_key("report")
    job = site.api.submit("report", {"key": key})
    window = open_as("approver", "/approvals")
    page = window.page
    card = open_card(page, job)
    pages.press(card, "Reject")
    dialog = pages.dialog(page)
    reject = dialog.get_by_role("button", name="Reject")
    expect(reject).to_be_disabled()
    dialog.get_by_label("Reason").fill("not this quarter")
    reject.click()
    expect(card).to_have_count(0)
    window.open(f"/jobs/{job}")
    pages.expect_status(page, "Cancelled")
    expect(pages.main(page)).to_contain_text("not this quarter")
