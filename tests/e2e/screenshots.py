"""python -m tests.e2e.screenshots

Take the pictures of README and docs from a running demo, into docs/images.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page

from tests.e2e import pages, png, waits
from tests.e2e.browser import Theme, Visit, run_chromium, visit
from tests.e2e.processes import ROOT, Program
from tests.e2e.screens import await_content

IMAGES = ROOT / "docs/images"
SIZE = (1280, 800)
OPTIONS = ("--seed", "1", "--port", "0", "--no-open")
# The demo begins with sample jobs of the last day, and goes on by itself. After a minute, a killed
# worker is silent and a lane is full.
PATIENCE_S = 180.0
PROBLEMS = 2
# Jobs of the wide flow that have completed when its picture is taken.
PARTS_DONE = 12
STOP_S = 60.0
# The end of what is on the page, which may be shorter than the window.
_HEIGHT = """
(most) => Math.min(most, 24 + Math.max(...[...document.querySelectorAll("main section")]
  .map((each) => Math.ceil(each.getBoundingClientRect().bottom))))
"""


class DemoProgram(Program):
    """`laneway demo` with its own database."""

    def __init__(self) -> None:
        super().__init__(["-m", "laneway", "demo", *OPTIONS], dsn="", steps=ROOT)
        del self._variables["LANEWAY_DATABASE_URL"]

    def kill(self) -> None:
        """Stop it as Ctrl-C does: killed, it could not stop its PostgreSQL."""
        self.process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_S)
        super().kill()

    @property
    def link(self) -> str:
        return self.find(r"(http://\S+/login\?link=\S+)")


def read(window: Visit, path: str) -> Any:
    """Read a route as the person who is signed in."""
    return window.context.request.get(f"{window.url}{path}").json()


def running_job(window: Visit) -> str | None:
    """A job that reports progress in words and is in the middle of it, once there is one."""
    active = read(window, "/admin/workers/status")["active"]
    for job in active:
        progress = job["progress"] or {}
        if progress.get("message") and 20 <= progress["percent"] <= 80:
            return str(job["id"])
    return None


def waiting_job(window: Visit) -> str | None:
    """A job that waits for a slot and for a limit, once there is one."""
    for job in read(window, "/jobs?status=approved&limit=50")["items"]:
        reasons = read(window, f"/jobs/{job['id']}/explain")["reasons"]
        if {"slots_full", "limit"} <= {reason["code"] for reason in reasons}:
            return str(job["id"])
    return None


def running_flow(window: Visit) -> str | None:
    """The wide flow, once a part of it is done; all of it, if it was too quick to be seen."""
    for flow in read(window, "/flows?name=yearbook")["items"]:
        if flow["counts"]["completed"] >= PARTS_DONE:
            return str(flow["id"])
    return None


def is_interesting(window: Visit) -> bool:
    """Whether something runs, waits for a decision and has failed."""
    counts = {each["status"]: each["count"] for each in read(window, "/jobs/counts")["items"]}
    return all(counts.get(status) for status in ("running", "awaiting_approval", "failed"))


def shows_problems(window: Visit) -> bool:
    """Whether the overview, which is open, lists some problems."""
    strip = window.page.get_by_role("region", name="Problems")
    return strip.get_by_role("listitem").count() >= PROBLEMS


def live_picture(page: Page) -> bytes | None:
    """A picture of the page; None if it was connecting, as when it follows another topic."""
    pages.expect_live(page)
    height = page.evaluate(_HEIGHT, SIZE[1])
    picture = page.screenshot(clip={"x": 0, "y": 0, "width": SIZE[0], "height": height})
    return picture if page.get_by_text("live", exact=True).is_visible() else None


def take(window: Visit, path: str, name: str) -> None:
    page = window.open(path)
    await_content(page)
    picture = waits.until(lambda: live_picture(page))
    target = IMAGES / f"{name}.png"
    target.write_bytes(png.shrink(picture))
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size // 1000} kB")


def take_all(browser: Browser, demo: DemoProgram) -> None:
    parts = urlsplit(demo.link)
    url = f"{parts.scheme}://{parts.netloc}"
    with visit(browser, url, size=SIZE) as window:
        window.sign_in(demo.link)
        flow = waits.until(lambda: running_flow(window), PATIENCE_S)
        take(window, f"/flows/{flow}", "flow")
        waits.until(lambda: is_interesting(window), PATIENCE_S)
        window.open("/")
        waits.until(lambda: shows_problems(window), PATIENCE_S)
        for theme in ("light", "dark"):
            set_theme(window, theme)
            take(window, "/", f"overview-{theme}")
        set_theme(window, "light")
        take(window, "/approvals", "approvals")
        job = waits.until(lambda: running_job(window), PATIENCE_S)
        take(window, f"/jobs/{job}", "job")
        job = waits.until(lambda: waiting_job(window), PATIENCE_S)
        take(window, f"/jobs/{job}", "explain")


def set_theme(window: Visit, theme: Theme) -> None:
    window.page.emulate_media(color_scheme=theme)


def main() -> int:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with DemoProgram() as demo, run_chromium() as browser:
        take_all(browser, demo)
    return 0


if __name__ == "__main__":
    sys.exit(main())
