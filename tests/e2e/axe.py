"""Accessibility checks of a page with axe-core."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

_SCRIPT = Path(__file__).parents[2] / "dashboard/node_modules/axe-core/axe.min.js"
_RUN = """
async (tags) => {
  const { violations } = await axe.run(document, { runOnly: { type: "tag", values: tags } });
  return violations.map(({ id, help, nodes: [first, ...others] }) =>
    `${id}: ${help}: ${first.html.slice(0, 120)} and ${others.length} more:`
    + ` ${first.failureSummary}`);
}
"""
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


def violations(page: Page) -> list[str]:
    """The rules of WCAG A and AA that the page breaks."""
    # Evaluated by the debugger, so that the page's content security policy does not refuse it.
    if not page.evaluate("'axe' in window"):
        page.evaluate(_SCRIPT.read_text())
    found: list[str] = page.evaluate(_RUN, TAGS)
    return found
