"""One job: cancel it, understand why it waits, submit it again with changes."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e import pages
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.sample_data import BIG
from tests.e2e.site import Site, new_key


def test_running_job_is_cancelled(site: Site, open_as: OpenAs) -> None:
    job = site.api.submit("export", {"key": new_key("held")})
    site.api.await_status(job, "running")
    page = open_as("operator", f"/jobs/{job}").page
    pages.expect_status(page, "Running")
    pages.press(pages.main(page), "Cancel")
    dialog = pages.dialog(page)
    dialog.get_by_label("Reason").fill("ordered twice")
    dialog.get_by_role("button", name=pages.named("Cancel")).last.click()
    pages.expect_status(page, "Cancelled")
    expect(pages.main(page)).to_contain_text("ordered twice")
    assert site.api.get(f"/jobs/{job}")["cancel_reason"] == "ordered twice"


def test_job_that_waits_for_a_limit_says_so(site: Site, open_as: OpenAs) -> None:
    key = new_key("holder")
    holder = site.api.submit("call_partner", {"key": key})
    site.api.await_status(holder, "running")
    key_of_next = new_key("next")
    site.steps.allow(key_of_next)
    waiting = site.api.submit("call_partner", {"key": key_of_next})
    page = open_as("operator", f"/jobs/{waiting}").page
    explained = pages.main(page).get_by_role("region", name="Why it is not running")
    expect(explained).to_contain_text("limit")
    expect(explained).to_contain_text("partner")
    site.steps.allow(key)
    pages.expect_status(page, "Completed")


def test_clone_with_edits_keeps_big_integers(site: Site, open_as: OpenAs) -> None:
    key = new_key("export")
    job = site.api.submit("export", {"key": key, "steps": BIG, "note": "first"}, delay=3600)
    page = open_as("operator", f"/jobs/{job}").page
    expect(pages.main(page)).to_contain_text(str(BIG))
    pages.press(pages.main(page), "More actions")
    page.get_by_role("menuitem", name="Clone with edits").click()
    dialog = pages.dialog(page)
    # As a form and as JSON: neither may lose a digit.
    expect(dialog.get_by_label("steps")).to_have_value(str(BIG))
    pages.press(dialog, "Edit as JSON")
    editor = dialog.get_by_role("textbox", name="Payload as JSON")
    assert str(BIG) in editor.input_value()
    editor.fill(editor.input_value().replace("first", "second"))
    pages.press(dialog, "Submit job")
    expect(dialog).to_have_count(0)
    expect(page).not_to_have_url(f"{site.url}/ui/jobs/{job}")
    copy = page.url.rpartition("/")[2]
    assert site.api.get(f"/jobs/{copy}")["payload"] == {"key": key, "steps": BIG, "note": "second"}
