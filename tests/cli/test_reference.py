"""The reference page and the program name the same commands and options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from laneway.cli.commands import COMMANDS as COMMANDS_BY_NAME
from laneway.cli.exits import ExitCode
from laneway.cli.main import app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md").read_text("utf-8")


def commands(command: Any, path: str = "laneway") -> Iterator[tuple[str, Any]]:
    """Every command that does something by itself."""
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, f"{path} {name}")
    if not hasattr(command, "commands") or getattr(command, "invoke_without_command", False):
        yield path, command


COMMANDS = dict(commands(get_command(app)))


def sections() -> dict[str, str]:
    parts = re.split(r"^#{1,3} ", PAGE, flags=re.MULTILINE)
    found = {}
    for part in parts:
        title, _, body = part.partition("\n")
        if named := re.fullmatch(r"`(laneway [a-z -]+)`", title):
            found[named[1]] = body
    return found


def test_every_command_is_documented_and_no_other() -> None:
    assert set(sections()) == set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_is_documented_with_its_command(path: str) -> None:
    options = {
        option
        for param in COMMANDS[path].params
        for option in param.opts
        if option.startswith("--") and option != "--help"
    }
    assert {option for option in options if option not in sections()[path]} == set()


def test_options_before_the_command_and_the_exit_codes_are_documented() -> None:
    for param in get_command(app).params:
        assert any(option in PAGE for option in param.opts), param.name
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)] == list(ExitCode)


def test_every_command_has_one_line_of_help() -> None:
    silent = [path for path, command in COMMANDS.items() if not (command.help or "").strip()]
    assert silent == []


def test_line_of_each_command_in_the_help_is_its_own() -> None:
    shown = {name: command.summary for name, command in COMMANDS_BY_NAME.items()}
    loaded = get_command(app).commands  # type: ignore[attr-defined]
    assert shown == {name: command.help for name, command in loaded.items()}
