"""A session that ends while a person types."""

from __future__ import annotations

import httpx2
from playwright.sync_api import expect

from tests.e2e import pages
from tests.e2e.browser import Visit
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.site import Site, new_key


def end_session(window: Visit) -> None:
    """End the session as another tab would; the browser still has its cookie."""
    cookies = {each["name"]: each["value"] for each in window.context.cookies()}
    with httpx2.Client(base_url=window.url, cookies=cookies) as client:
        csrf = client.get("/me").json()["csrf"]
        headers = {"X-CSRF-Token": csrf, "Origin": window.url}
        assert client.post("/logout", headers=headers).status_code == 204


def test_expired_session_loses_nothing_that_was_typed(site: Site, open_as: OpenAs) -> None:
    job = site.api.submit("export", {"key": new_key("held")})
    site.api.await_status(job, "running")
    window = open_as("operator", f"/jobs/{job}")
    page = window.page
    pages.press(pages.main(page), "Cancel")
    cancel = pages.dialog(page)
    cancel.get_by_label("Reason").fill("typed before the end")
    end_session(window)
    cancel.get_by_role("button", name=pages.named("Cancel")).last.click()
    again = page.get_by_role("dialog", name="Sign in again")
    again.get_by_label("One-time link or token").fill(site.link("operator"))
    again.get_by_role("button", name="Sign in").click()
    expect(again).to_have_count(0)
    pages.expect_status(page, "Cancelled")
    assert site.api.get(f"/jobs/{job}")["cancel_reason"] == "typed before the end"


def test_session_that_ends_on_a_flow_is_continued(site: Site, open_as: OpenAs) -> None:
    job = {"name": "extract", "job_type": "export", "payload": {"key": new_key("held")}}
    flow = site.api.send("POST", "/flows", {"name": new_key("nightly"), "jobs": [job]})["id"]
    window = open_as("operator", f"/flows/{flow}")
    page = window.page
    pages.press(pages.main(page), "Cancel")
    pages.dialog(page).get_by_label("Reason").fill("typed before the end")
    end_session(window)
    pages.press(pages.dialog(page), "Cancel 1 job")
    again = page.get_by_role("dialog", name="Sign in again")
    again.get_by_label("One-time link or token").fill(site.link("operator"))
    again.get_by_role("button", name="Sign in").click()
    expect(again).to_have_count(0)
    pages.expect_status(page, "Cancelled")
    [cancelled] = site.api.get(f"/jobs?flow={flow}")["items"]
    assert cancelled["cancel_reason"] == "typed before the end"


def test_another_person_does_not_send_what_the_first_typed(site: Site, open_as: OpenAs) -> None:
    job = site.api.submit("export", {"key": new_key("held")})
    site.api.await_status(job, "running")
    window = open_as("operator", f"/jobs/{job}")
    page = window.page
    pages.press(pages.main(page), "Cancel")
    end_session(window)
    pages.dialog(page).get_by_role("button", name=pages.named("Cancel")).last.click()
    again = page.get_by_role("dialog", name="Sign in again")
    again.get_by_label("One-time link or token").fill(site.link("platform_admin"))
    again.get_by_role("button", name="Sign in").click()
    expect(pages.account(page, "platform_admin")).to_be_visible()
    pages.expect_status(page, "Running")
    assert site.api.get(f"/jobs/{job}")["cancel_requested_at"] is None


def test_sign_in_with_another_tab_continues_the_page(site: Site, open_as: OpenAs) -> None:
    job = site.api.submit("export", {"key": new_key("held")})
    site.api.await_status(job, "running")
    window = open_as("operator", f"/jobs/{job}")
    page = window.page
    pages.press(pages.main(page), "Cancel")
    pages.dialog(page).get_by_label("Reason").fill("typed before the end")
    end_session(window)
    pages.dialog(page).get_by_role("button", name=pages.named("Cancel")).last.click()
    again = page.get_by_role("dialog", name="Sign in again")
    expect(again).to_be_visible()
    page.keyboard.press("Escape")
    expect(again).to_be_visible()
    secret = site.link("operator").split("link=")[1]
    signed_in = window.context.request.post(f"{window.url}/login", form={"link": secret})
    assert signed_in.ok
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    expect(again).to_have_count(0)
    pages.expect_status(page, "Cancelled")
    assert site.api.get(f"/jobs/{job}")["cancel_reason"] == "typed before the end"


def test_sign_out_after_the_end_drops_what_was_sent(site: Site, open_as: OpenAs) -> None:
    job = site.api.submit("export", {"key": new_key("held")})
    site.api.await_status(job, "running")
    window = open_as("operator", f"/jobs/{job}")
    page = window.page
    pages.press(pages.main(page), "Cancel")
    end_session(window)
    pages.dialog(page).get_by_role("button", name=pages.named("Cancel")).last.click()
    again = page.get_by_role("dialog", name="Sign in again")
    again.get_by_role("button", name=pages.named("Sign out")).click()
    page.get_by_label("One-time link or token").fill(site.link("platform_admin"))
    page.get_by_role("button", name="Sign in").click()
    expect(pages.account(page, "platform_admin")).to_be_visible()
    pages.expect_status(page, "Running")
    assert site.api.get(f"/jobs/{job}")["cancel_requested_at"] is None


def test_tab_notices_another_person_in_another_tab(site: Site, open_as: OpenAs) -> None:
    window = open_as("operator", "/jobs")
    first = window.page
    expect(pages.account(first, "operator")).to_be_visible()
    second = window.context.new_page()
    second.goto(site.link("platform_admin"))
    second.get_by_role("button", name="Sign in").click()
    expect(pages.account(second, "platform_admin")).to_be_visible()
    expect(pages.account(first, "platform_admin")).to_be_visible()
