"""The dashboard without a mouse."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e import pages, waits
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.site import Site, new_key

SCREENS = {
    "l": "Lanes", "j": "Jobs", "k": "Flows", "f": "Failures", "a": "Approvals", "s": "Schedules",
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


def test_requests_are_opened_and_rejected_by_keys(site: Site, open_as: OpenAs) -> None:
    job = site.api.submit("report", {"key": new_key("report")})
    site.api.await_status(job, "awaiting_approval")
    page = open_as("approver", "/approvals").page
    card = page.get_by_role("article", name=f"{job[:13]}…{job[-6:]}")
    button = card.get_by_role("heading").get_by_role("button")
    button.focus()
    if button.get_attribute("aria-expanded") == "false":
        # A closed request opens first: its content must be on the screen.
        page.keyboard.press("r")
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(card.get_by_role("button", name="Reject")).to_be_visible()
    page.keyboard.press("r")
    expect(pages.dialog(page)).to_be_visible()
    page.keyboard.press("Escape")
    expect(pages.dialog(page)).to_have_count(0)
    expect(button).to_be_focused()


def test_focus_returns_to_the_button_of_each_dialog(site: Site, open_as: OpenAs) -> None:
    page = open_as("platform_admin").page
    dialogs = {
        "/jobs": "New job", "/lanes": "New lane", "/limits": "New limit",
        "/schedules": "New schedule",
    }  # fmt: skip
    for path, name in dialogs.items():
        page.goto(f"{site.url}/ui{path}")
        button = pages.main(page).get_by_role("button", name=name, exact=True)
        button.focus()
        page.keyboard.press("Enter")
        expect(pages.dialog(page)).to_be_visible()
        pages.dialog(page).get_by_role("button", name="Close").press("Enter")
        expect(pages.dialog(page)).to_have_count(0)
        expect(button).to_be_focused()


def test_forms_of_access_begin_at_their_first_field(site: Site, open_as: OpenAs) -> None:
    page = open_as("platform_admin", "/settings").page
    dialog = pages.dialog(page)
    for path, name, field in (
        ("tokens", "New token", "Principal"),
        ("people", "New principal", "Name"),
        ("people", "Grant role", "Role"),
        ("roles", "New role", "Name"),
    ):
        page.goto(f"{site.url}/ui/settings/{path}")
        button = pages.main(page).get_by_role("button", name=name, exact=True).first
        button.focus()
        page.keyboard.press("Enter")
        first = dialog.get_by_label(field).first
        expect(first).to_be_focused()
        page.keyboard.press("Shift+Tab")
        expect(dialog.get_by_role("button", name="Close")).to_be_focused()
        page.keyboard.press("Tab")
        expect(first).to_be_focused()
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(button).to_be_focused()


def test_token_is_created_and_revoked_without_a_mouse(site: Site, open_as: OpenAs) -> None:
    name = new_key("token")
    page = open_as("platform_admin", "/settings/tokens").page
    dialog = pages.dialog(page)
    button = pages.main(page).get_by_role("button", name="New token", exact=True)
    button.focus()
    page.keyboard.press("Enter")
    expect(dialog.get_by_label("Principal").first).to_be_focused()
    option = page.get_by_role("option", name="platform_admin", exact=True)

    def is_listed() -> bool:
        """Open the list, once there are principals to choose from."""
        if not option.is_visible():
            page.keyboard.press("Enter")
        return option.is_visible()

    waits.until(is_listed)
    option.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("button", name="Copy secret")).to_be_focused()
    dialog.get_by_role("button", name="Done").press("Enter")
    expect(dialog).to_have_count(0)
    expect(button).to_be_focused()
    row = pages.main(page).get_by_role("row").filter(has_text=name)
    row.get_by_role("button", name="Revoke").press("Enter")
    dialog.get_by_role("button", name="Revoke").press("Enter")
    expect(dialog).to_have_count(0)
    expect(row.get_by_text("Revoked")).to_be_visible()
    # Its button is gone: the focus stays on the page.
    expect(pages.main(page)).to_be_focused()


def test_escape_closes_a_form_until_something_is_typed(site: Site, open_as: OpenAs) -> None:
    page = open_as("platform_admin", "/settings/roles").page
    for path, name, field in (
        ("/settings/roles", "New role", "Name"),
        ("/lanes", "New lane", "Name"),
        ("/schedules", "New schedule", "Cron expression"),
    ):
        page.goto(f"{site.url}/ui{path}")
        pages.press(pages.main(page), name)
        expect(pages.dialog(page)).to_be_visible()
        page.keyboard.press("Escape")
        expect(pages.dialog(page)).to_have_count(0)
        pages.press(pages.main(page), name)
        typed = pages.dialog(page).get_by_role("textbox", name=field)
        typed.fill("kept")
        page.keyboard.press("Escape")
        expect(typed).to_have_value("kept")
        pages.press(pages.dialog(page), "Discard")
        expect(pages.dialog(page)).to_have_count(0)


def test_escape_keeps_what_was_chosen_in_a_form(site: Site, open_as: OpenAs) -> None:
    page = open_as("platform_admin", "/lanes").page
    pages.press(pages.main(page), "New lane")
    dialog = pages.dialog(page)
    pages.press(dialog, "Increase Slots")
    page.keyboard.press("Escape")
    expect(dialog.get_by_role("textbox", name="Slots")).to_have_value("2")


def test_screens_are_a_list_behind_a_button_on_phones(site: Site, open_as: OpenAs) -> None:
    page = open_as("platform_admin").page
    page.set_viewport_size({"width": 360, "height": 740})
    screens = page.get_by_role("navigation", name="Screens")
    button = screens.get_by_role("button", name="Overview")
    expect(screens.get_by_role("link")).to_have_count(0)
    button.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(screens.get_by_role("link")).to_have_count(0)
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    screens.get_by_role("link", name="Limits").press("Enter")
    expect(page.get_by_role("heading", level=1, name="Limits")).to_be_visible()
    expect(screens.get_by_role("link")).to_have_count(0)
