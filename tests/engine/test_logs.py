"""Log lines of a worker process."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from laneway.config import Settings
from laneway.engine.logs import JsonLines, configure


def test_a_json_line_holds_what_was_said_and_what_went_wrong() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        record = logging.LogRecord(
            "laneway", logging.ERROR, __file__, 1, "job %s", ("7",), sys.exc_info()
        )
    line = json.loads(JsonLines().format(record))
    assert line["message"] == "job 7"
    assert line["level"] == "error"
    assert "ValueError: broken" in line["error"]


def test_an_application_that_logs_its_own_way_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = logging.NullHandler()
    monkeypatch.setattr(logging.getLogger(), "handlers", [own])
    configure(Settings.load())
    assert logging.getLogger().handlers == [own]


def test_otherwise_lines_go_to_stderr_at_the_level_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    laneway = logging.getLogger("laneway")
    monkeypatch.setattr(laneway, "level", laneway.level)
    configure(Settings.load(log_format="json", log_level="INFO"))
    laneway.info("worker %s serves %s", "w", "default")
    laneway.debug("not shown")
    assert json.loads(capsys.readouterr().err)["message"] == "worker w serves default"
