"""Durations, times and text, in and out."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
import typer
from typer.testing import CliRunner

from laneway import errors
from laneway.cli import inputs
from laneway.cli.exits import ExitCode, exit_code
from laneway.cli.main import app
from laneway.cli.output import for_people, seconds, to_json, visible


@pytest.mark.parametrize(
    "text,value",
    [("90", 90.0), ("1.5s", 1.5), ("500ms", 0.5), ("5m", 300.0), ("2h", 7200.0), ("1d", 86400.0)],
)
def test_duration_is_read_in_every_unit(text: str, value: float) -> None:
    assert inputs.duration(text) == value


@pytest.mark.parametrize("text", ["", "s", "-5", "1e3", "5 m", "1w", "٣"])
def test_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="not a duration"):
        inputs.duration(text)


@pytest.mark.parametrize("text", ["9" * 400, "40000d"])
def test_duration_has_an_end(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="longer than 100 years"):
        inputs.duration(text)


@pytest.mark.parametrize(
    "command,default",
    [
        ("events send", "1d"),
        ("flows watch", "1s"),
        ("freeze", "10m"),
        ("admin failures", "1h"),
        ("top", "1s"),
    ],
)
def test_help_shows_default_durations_as_they_are_written(command: str, default: str) -> None:
    shown = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert re.search(rf"default: \(?{default}\b", shown.output), shown.output


def test_since_takes_a_time_or_how_long_ago() -> None:
    assert inputs.since("2030-01-01T00:00:00Z") == datetime(2030, 1, 1, tzinfo=UTC)
    assert inputs.since("1h") == 3600.0


@pytest.mark.parametrize(
    "value,shown",
    [
        (None, "-"), (-1.0, "0ms"), (0.25, "250ms"), (59.9, "59s"), (61, "1m01s"),
        (7265, "2h01m"), (4 * 86400, "4d"),
    ],
)  # fmt: skip
def test_durations_are_shown_in_readable_units(value: float | None, shown: str) -> None:
    assert seconds(value) == shown


def test_control_characters_are_written_out() -> None:
    assert visible("a\x1b[2Jb\nc\u202ed") == "a\\x1b[2Jb c\\u202ed"
    assert to_json({"a": "\x1b\u009b\u2028é"}) == '{"a": "\\u001b\\u009b\\u2028é"}'
    turned = "\u061c\u200e\u200f\u202a\u202e\u2066\u2069"
    assert to_json(turned).isascii()


@pytest.mark.parametrize(
    "error,code",
    [
        (errors.InvalidInput("a", "b"), 2), (errors.ConfigError(), 2), (errors.NotFound(), 3),
        (errors.Refused(), 4), (errors.StaleAttempt(), 4), (errors.JobFailed(), 1),
        (errors.DatabaseUnavailable(), 5), (errors.SchemaMismatch(), 5),
        (errors.NeedsDatabase(), 4), (errors.LanewayError(), 1), (ValueError(), 1),
    ],
)  # fmt: skip
def test_every_error_has_its_exit_code(error: Exception, code: int) -> None:
    assert exit_code(error) is ExitCode(code)


def test_durations_of_a_reason_are_for_people() -> None:
    assert for_people("unseen for 132 s; dead after 60 s") == "unseen for 2m12s; dead after 1m00s"
    assert for_people("version 3.11 stays, and so does box-3 s") == (
        "version 3.11 stays, and so does box-3 s"
    )
