"""A real Chromium, and pages that remember everything that must not happen in them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Playwright,
    Request,
    Response,
    sync_playwright,
)

Theme = Literal["light", "dark"]
_SIGN_IN = re.compile("log in|sign in", re.IGNORECASE)
WIDE = (1440, 900)
PHONE = (360, 740)
# A laptop at 200 % zoom, and the width that WCAG 1.4.10 asks for.
ZOOMED = (720, 450)
NARROWEST = (320, 640)
# Generous: only a failure takes this long.
PATIENCE_MS = 20_000
_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
});
"""


class NoBrowser(Exception):
    """Chromium is not installed."""


def find_chromium() -> str:
    """Chromium's program; playwright itself would only find the one that it downloads."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    raise NoBrowser("chromium is not on PATH; install it with: sudo apt-get install chromium")


@contextmanager
def run_chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright, launch(playwright) as browser:
        yield browser


def launch(playwright: Playwright) -> Browser:
    # Chromium refuses to sandbox the superuser.
    more = ["--no-sandbox"] if os.geteuid() == 0 else []
    return playwright.chromium.launch(
        executable_path=find_chromium(), args=[*more, "--disable-dev-shm-usage"]
    )


@dataclass
class Record:
    """Mishaps of a page, and the requests it made."""

    dialogs: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("dialog", self._on_dialog)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request))
        page.on("response", self._on_response)

    def _on_dialog(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _on_console(self, message: ConsoleMessage) -> None:
        # The browser itself logs every response of 400 and more; `refused` has those.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def _on_response(self, response: Response) -> None:
        if response.status >= 400:
            path = response.url.partition("//")[2].partition("/")[2]
            self.refused.append(f"{response.status} {response.request.method} /{path}")


class Visit:
    """One person's browser window with one page."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.url = url
        self.record = Record()
        context.set_default_timeout(PATIENCE_MS)
        context.set_default_navigation_timeout(PATIENCE_MS)
        context.add_init_script(_VIOLATIONS)
        self.page = self.new_page()

    def new_page(self) -> Page:
        page = self.context.new_page()
        self.record.watch(page)
        return page

    def open(self, path: str = "/") -> Page:
        """Open a screen by its address below /ui."""
        self.page.goto(f"{self.url}/ui{path}")
        return self.page

    def sign_in(self, link: str) -> Page:
        """Open a one-time link and press its button."""
        self.page.goto(link)
        self.press_sign_in()
        self.page.wait_for_url("**/ui/**")
        return self.page

    def press_sign_in(self) -> None:
        self.page.get_by_role("button", name=_SIGN_IN).click()

    def violations(self) -> list[str]:
        """The breaches of the content security policy in the current document."""
        found: list[str] = self.page.evaluate("window.violations ?? []")
        return found


@contextmanager
def visit(
    browser: Browser, url: str, *, theme: Theme = "light", size: tuple[int, int] = WIDE
) -> Iterator[Visit]:
    """Open a window with its own cookies until the block ends."""
    width, height = size
    context = browser.new_context(
        color_scheme=theme,
        viewport={"width": width, "height": height},
        locale="en-GB",
        timezone_id="Europe/Berlin",
        reduced_motion="reduce",
    )
    try:
        yield Visit(context, url)
    finally:
        context.close()
