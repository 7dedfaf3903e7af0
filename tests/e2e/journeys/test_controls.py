"""Schedules, tokens, and the trace that every change leaves."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e import pages, waits
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.site import Site, new_key


def test_change_is_in_the_history_and_the_audit_and_can_be_undone(
    site: Site, open_as: OpenAs
) -> None:
    site.api.send("PATCH", "/admin/workers/lanes/hostile", {"max_slots": 7})
    window = open_as("platform_admin", "/lanes/hostile")
    page = window.page
    pages.press(pages.main(page), "Undo")
    expect(pages.dialog(page)).to_be_visible()
    pages.press(pages.dialog(page), "Undo")
    expect(pages.dialog(page)).to_have_count(0)
    assert site.api.get("/admin/workers/lanes/hostile")["max_slots"] != 7
    window.open("/audit")
    newest = pages.main(page).get_by_role("row").filter(has_text="hostile").first
    expect(newest).to_contain_text("platform_admin")


def test_schedule_runs_now(site: Site, open_as: OpenAs) -> None:
    name, key = new_key("schedule"), new_key("export")
    site.steps.allow(key)
    sent = {"name": name, "job_type": "export", "cron": "30 2 * * 1-5", "payload": {"key": key}}
    site.api.send("POST", "/admin/schedules", {**sent, "timezone": "Europe/Berlin"})
    page = open_as("operator", "/schedules").page
    card = pages.main(page).get_by_role("row").filter(has_text=name)
    expect(card).to_contain_text("At 02:30, Mon–Fri")
    pages.press(card, "Run now")

    def has_run() -> bool:
        jobs = site.api.get("/jobs?job_type=export&status=completed&limit=50")["items"]
        return any(each["payload"]["key"] == key for each in jobs)

    waits.until(has_run)


def test_secret_of_a_new_token_is_shown_once(site: Site, open_as: OpenAs) -> None:
    name = new_key("token")
    window = open_as("platform_admin", "/settings/tokens")
    page = window.page
    pages.press(pages.main(page), "New token")
    dialog = pages.dialog(page)
    dialog.get_by_label("Principal").click()
    page.get_by_role("option", name="platform_admin", exact=True).click()
    dialog.get_by_label("Name").fill(name)
    pages.press(dialog, "Create")
    secret = page.get_by_role("dialog", name=f"Token {name}")
    expect(secret).to_contain_text("lw_")
    pages.press(secret, "Close")
    row = pages.main(page).get_by_role("row").filter(has_text=name)
    expect(row).to_be_visible()
    pages.press(row, "Revoke")
    pages.press(pages.dialog(page), "Revoke")
    expect(row.get_by_role("button", name="Revoke")).to_have_count(0)
