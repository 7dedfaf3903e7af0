"""First paint of every screen, and the time of its requests, with millions of jobs."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from playwright.sync_api import Browser, expect

from tests.e2e import pages
from tests.e2e.browser import Visit, visit
from tests.e2e.screens import await_content
from tests.e2e.site import Site

ENDED = 5_000_000
WAITING = 1_000_000
# Each screen is opened this often; a figure is the median, so that one busy moment does not count.
TIMES = 3
# The time of the first frame with the screen's heading and nothing that is still loading.
SHOWN = """
new MutationObserver((_, observer) => {
  if (!document.querySelector("h1") || document.querySelector("[aria-busy=true]")) return;
  observer.disconnect();
  requestAnimationFrame(() => { window.shownAt = performance.now(); });
}).observe(document, { childList: true, subtree: true, attributes: true });
"""
_PAINTED = """
() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0
"""
_SCRIPTS = """
() => performance.getEntriesByType("resource").map(({ name }) => name)
  .filter((name) => new URL(name).pathname.endsWith(".js"))
"""
_NO_READ = re.compile(r"/(ui|login|logout|events|jobs/[^/]+/stream)\b")


@dataclass
class Timings:
    """Milliseconds: first paint and content by screen, reads by path."""

    painted: dict[str, float] = field(default_factory=dict)
    shown: dict[str, float] = field(default_factory=dict)
    requests: dict[str, float] = field(default_factory=dict)

    @property
    def slowest_first_paint_ms(self) -> float:
        return max(self.painted.values(), default=0)

    @property
    def slowest_query_ms(self) -> float:
        return max(self.requests.values(), default=0)


def measure(site: Site, browser: Browser, paths: Mapping[str, str]) -> Timings:
    """Open every screen, then time each read that the screens made, one after the other."""
    timings = Timings()
    with visit(browser, site.url) as window:
        window.context.add_init_script(SHOWN)
        window.sign_in(site.link("platform_admin"))
        for name, path in paths.items():
            times = [_open(window, path) for _ in range(TIMES)]
            timings.painted[name] = _median([painted for painted, _ in times])
            timings.shown[name] = _median([shown for _, shown in times])
        _show_messages(window)
    for path in sorted(reads(site.url, [each.url for each in window.record.requests])):
        timings.requests[path] = _median([_time(site, path) for _ in range(TIMES)])
    return timings


def _show_messages(window: Visit) -> None:
    """Read the newest failures of the largest group, which no screen reads by itself."""
    page = window.open("/failures?window=24h")
    await_content(page)
    group = pages.main(page).get_by_role("row").filter(has_text="TimeoutError").first
    pages.press(group, "Show messages")
    expect(pages.main(page).get_by_text("the newest 100 of")).to_be_visible()


def reads(root: str, urls: Iterable[str]) -> set[str]:
    """The distinct reads of the API; not the files of the dashboard, nor streams."""
    paths = {url.removeprefix(root) for url in urls if url.startswith(root)}
    return {path for path in paths if not _NO_READ.match(path)}


def _time(site: Site, path: str) -> float:
    """Milliseconds of one request that the server handles alone."""
    began = time.perf_counter()
    site.api.get(path)
    return (time.perf_counter() - began) * 1000


def _open(window: Visit, path: str) -> tuple[float, float]:
    page = window.open(path)
    await_content(page)
    page.wait_for_function("window.shownAt !== undefined")
    return page.evaluate(_PAINTED), page.evaluate("window.shownAt")


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def js_gzip_kb(window: Visit) -> float:
    """The compressed size of all scripts that the first load of the overview fetches."""
    page = window.open("/")
    await_content(page)
    scripts: list[str] = page.evaluate(_SCRIPTS)
    bodies = [window.context.request.get(url).body() for url in scripts]
    return round(sum(len(gzip.compress(body, 9)) for body in bodies) / 1000, 1)
