"""Every screen in both themes at two widths: axe-core, overflow, console, content security policy.

At two more widths, no table scrolls sideways. Pictures go to `.cache/screens`, to look at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.e2e import axe
from tests.e2e.browser import NARROWEST, PATIENCE_MS, PHONE, WIDE, ZOOMED, Theme, Visit, visit
from tests.e2e.site import Site

THEMES: tuple[Theme, ...] = ("light", "dark")
SIZES = (WIDE, PHONE)
PICTURES = Path(__file__).parents[2] / ".cache/screens"
# Of a picture: the rest of a long list looks the same.
HIGHEST = 2400
# Elements that stick out at the right, although no part of the page may scroll sideways.
_TOO_WIDE = """
() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const isScrolled = (element) => {
    for (let up = element.parentElement; up && up !== document.body; up = up.parentElement)
      if (getComputedStyle(up).overflowX !== "visible") return true;
    return false;
  };
  return [...document.body.querySelectorAll("*")]
    .filter((each) => each.getBoundingClientRect().right > width + 1 && !isScrolled(each))
    .map((each) => `${each.tagName.toLowerCase()} "${each.textContent.slice(0, 40)}"`)
    .slice(0, 5);
}
"""

_SCROLLED_TABLES = """
() => [...document.querySelectorAll("main table")]
  .map((table) => [table, table.parentElement])
  .filter(([, frame]) => frame.scrollWidth > frame.clientWidth + 1)
  .map(([table]) => table.getAttribute("aria-label"))
"""


def screens(made: Mapping[str, str]) -> dict[str, str]:
    """The path of each screen below /ui, given ids of jobs."""
    return {
        "overview": "/",
        "lanes": "/lanes",
        "lane": "/lanes/exports",
        "jobs": "/jobs",
        "job": f"/jobs/{made['running']}",
        "job-waiting": f"/jobs/{made['event']}",
        "flows": "/flows",
        "flow": f"/flows/{made['flow']}",
        "flow-timeline": f"/flows/{made['flow']}?view=timeline",
        "failures": "/failures",
        "approvals": "/approvals",
        "schedules": "/schedules",
        "workers": "/workers",
        "limits": "/limits",
        "audit": "/audit",
        "settings": "/settings",
    }


@dataclass
class Findings:
    """Defects, by screen, theme and width."""

    checked: int = 0
    axe: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def await_content(page: Page) -> None:
    """Wait until the screen shows its heading and nothing is loading."""
    expect(page.get_by_role("heading", level=1)).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator("[aria-busy=true]")).to_have_count(0, timeout=PATIENCE_MS)


def too_wide(page: Page) -> list[str]:
    """The elements that make the page scroll sideways."""
    found: list[str] = page.evaluate(_TOO_WIDE)
    return found


def check(site: Site, browser: Browser, paths: Mapping[str, str]) -> Findings:
    """Visit every screen in each theme and width."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    found = Findings()
    for theme in THEMES:
        for size in SIZES:
            with visit(browser, site.url, theme=theme, size=size) as window:
                window.sign_in(site.link("platform_admin"))
                for name, path in paths.items():
                    _check_screen(window, f"{name} {theme} {size[0]}", path, found)
    for size in (ZOOMED, NARROWEST):
        with visit(browser, site.url, size=size) as window:
            window.sign_in(site.link("platform_admin"))
            for name, path in paths.items():
                found.others += _reflow(window, f"{name} {size[0]}", path)
    return found


def _reflow(window: Visit, label: str, path: str) -> list[str]:
    """Parts of a screen that one can read only by scrolling sideways."""
    page = window.open(path)
    await_content(page)
    tables: list[str] = page.evaluate(_SCROLLED_TABLES)
    return [
        *(f"{label}: is too wide: {each}" for each in too_wide(page)),
        *(f"{label}: scrolls sideways: {each}" for each in tables),
    ]


def _check_screen(window: Visit, label: str, path: str, found: Findings) -> None:
    page, record = window.open(path), window.record
    await_content(page)
    found.checked += 1
    found.axe += [f"{label}: {each}" for each in axe.violations(page)]
    wrong = [
        *(f"is too wide: {each}" for each in too_wide(page)),
        *(f"console: {each}" for each in record.errors),
        *(f"refused: {each}" for each in record.refused),
        *(f"content security policy: {each}" for each in window.violations()),
    ]
    found.others += [f"{label}: {each}" for each in wrong]
    record.errors.clear()
    record.refused.clear()
    height = min(page.evaluate("document.documentElement.scrollHeight"), HIGHEST)
    page.screenshot(
        path=PICTURES / f"{label.replace(' ', '-')}.png",
        full_page=True,
        clip={"x": 0, "y": 0, "width": page.evaluate("innerWidth"), "height": height},
    )
