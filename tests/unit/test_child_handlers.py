"""A child process finds the handlers of an application that a function makes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from laneway.engine.child.handlers import HandlerFinder

APP = """
from laneway import Laneway, SyncContext
made = []
def make():
    lw = Laneway()
    @lw.handler("one", isolation="process")
    def one(ctx: SyncContext) -> None: ...
    @lw.handler("two", isolation="process")
    def two(ctx: SyncContext) -> None: ...
    made.append(lw)
    return lw
"""


def test_child_makes_the_application_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made_shop.py").write_text(APP)
    monkeypatch.syspath_prepend(tmp_path)
    finder = HandlerFinder("made_shop:make()")
    found = [finder.find(name, "made_shop", {})[0].job_type for name in ("one", "two")]
    assert found == ["one", "two"]
    assert len(sys.modules.pop("made_shop").made) == 1
