"""`job.watch()`: a progress bar until the job ends, then what `wait` returns."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from laneway import Context, Laneway
from laneway.errors import JobFailed


def made(dsn: str) -> Laneway:
    lw = Laneway(dsn)

    @lw.handler("count")
    async def count(ctx: Context, pages: int) -> int:
        await ctx.progress(pages, pages, "<b>all</b>")
        return pages

    return lw


async def test_watch_writes_lines_without_a_terminal(
    dsn: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with made(dsn) as lw, lw.worker():
        job = await lw.submit("count", {"pages": 4})
        assert await job.watch(timeout=60) == 4
    assert capsys.readouterr().err.splitlines()[-1] == "count completed 100 %"


def test_watch_needs_no_event_loop(dsn: str, capsys: pytest.CaptureFixture[str]) -> None:
    lw = made(dsn)
    with lw.sync.worker():
        assert lw.sync.submit("count", {"pages": 4}).watch(timeout=60) == 4
    lw.sync.close()
    assert "count completed 100 %" in capsys.readouterr().err


async def test_watch_raises_like_wait(dsn: str, capsys: pytest.CaptureFixture[str]) -> None:
    async with made(dsn) as lw:
        job = await lw.submit("count", {"pages": 4}, delay=3600)
        with pytest.raises(TimeoutError, match="goes on"):
            await job.watch(timeout=0)
        await job.cancel("not needed")
        with pytest.raises(JobFailed, match="was cancelled"):
            await job.watch()
    assert "count cancelled not needed" in capsys.readouterr().err


async def test_notebook_shows_one_bar_of_escaped_html(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[dict[str, str]] = []

    def display(data: dict[str, str], **options: Any) -> SimpleNamespace:
        assert options == {"raw": True, "display_id": True}
        assert not shown
        shown.append(data)
        return SimpleNamespace(update=lambda data, raw: shown.append(data))

    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    async with made(dsn) as lw, lw.worker():
        job = await lw.submit("count", {"pages": 4})
        assert await job.watch(timeout=60) == 4
    assert shown[-1]["text/plain"] == "count completed 100 %"
    assert shown[-1]["text/html"].startswith('<progress value="4" max="4">')
    assert not any("<b>" in each["text/html"] for each in shown)
