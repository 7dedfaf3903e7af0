"""python -m tests.e2e.screenshots

Take the pictures of README and docs from a running demo, into docs/images.
"""

from __future__ import annotations

import sys
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser

from tests.e2e import png, waits
from tests.e2e.browser import Theme, Visit, run_chromium, visit
from tests.e2e.processes import ROOT, Program
from tests.e2e.screens import await_content

IMAGES = ROOT / "docs/images"
SIZE = (1280, 800)
# The demo begins with sample jobs of the last day, and goes on by itself.
PATIENCE_S = 120.0


class DemoProgram(Program):
    """`laneway demo` with its own database."""

    def __init__(self) -> None:
        super().__init__(["-m", "laneway", "demo"], dsn="", steps=ROOT)
        del self._variables["LANEWAY_DATABASE_URL"]

    @property
    def link(self) -> str:
        return self.find(r"(http://\S+/login\?link=\S+)")


def read(window: Visit, path: str) -> Any:
    """Read a route as the person who is signed in."""
    return window.context.request.get(f"{window.url}{path}").json()


def running_job(window: Visit) -> str | None:
    """A job in the middle of its work, once there is one."""
    active = read(window, "/admin/workers/status")["active"]
    for job in active:
        percent = (job["progress"] or {}).get("percent") or 0
        if 20 <= percent <= 80:
            return str(job["id"])
    return None


def is_interesting(window: Visit) -> bool:
    """Whether something runs, waits for a decision and has failed."""
    counts = {each["status"]: each["count"] for each in read(window, "/jobs/counts")["items"]}
    return all(counts.get(status) for status in ("running", "awaiting_approval", "failed"))


def take(window: Visit, path: str, name: str) -> None:
    page = window.open(path)
    await_content(page)
    page.wait_for_load_state("load")
    target = IMAGES / f"{name}.png"
    target.write_bytes(png.shrink(page.screenshot()))
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size // 1000} kB")


def take_all(browser: Browser, demo: DemoProgram) -> None:
    parts = urlsplit(demo.link)
    url = f"{parts.scheme}://{parts.netloc}"
    with visit(browser, url, size=SIZE) as window:
        window.sign_in(demo.link)
        waits.until(lambda: is_interesting(window), PATIENCE_S)
        for theme in ("light", "dark"):
            set_theme(window, theme)
            take(window, "/", f"overview-{theme}")
        set_theme(window, "light")
        take(window, "/approvals", "approvals")
        job = waits.until(lambda: running_job(window), PATIENCE_S)
        take(window, f"/jobs/{job}", "job")


def set_theme(window: Visit, theme: Theme) -> None:
    window.page.emulate_media(color_scheme=theme)


def main() -> int:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with DemoProgram() as demo, run_chromium() as browser:
        take_all(browser, demo)
    return 0


if __name__ == "__main__":
    sys.exit(main())
