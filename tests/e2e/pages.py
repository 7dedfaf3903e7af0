"""Actions and checks that many screens share."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect


def main(page: Page) -> Locator:
    return page.get_by_role("main")


def account(page: Page, name: str) -> Locator:
    """The button that opens a person's menu."""
    return page.get_by_role("banner").get_by_role("button", name=name, exact=True)


def dialog(page: Page) -> Locator:
    """The open dialog."""
    return page.get_by_role("dialog").or_(page.get_by_role("alertdialog"))


def named(name: str) -> re.Pattern[str]:
    """A control whose name begins with these words: some add a count or an ellipsis."""
    return re.compile(rf"^{name}\b", re.IGNORECASE)


def press(scope: Page | Locator, name: str) -> None:
    scope.get_by_role("button", name=named(name)).first.click()


def press_sequence(page: Page, *keys: str) -> None:
    """Press keys in a row, which must follow each other within a second, whatever the load."""
    page.evaluate(
        "keys => { for (const key of keys) (document.activeElement ?? document.body)"
        ".dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })) }",
        list(keys),
    )


def expect_live(page: Page) -> None:
    expect(page.get_by_text("live", exact=True)).to_be_visible()


def expect_status(page: Page, status: str) -> None:
    """Wait until the job's page says this state, as in its badge."""
    expect(main(page).get_by_text(status, exact=True).first).to_be_visible()
