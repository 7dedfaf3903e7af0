"""The files in deploy/ fit the program: its commands, options, variables and probes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from laneway.cli.main import app
from laneway.config.settings import Settings
from laneway.observability.metrics import FAMILIES

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TEXTS = {
    path.relative_to(DEPLOY).as_posix(): path.read_text("utf-8")
    for path in sorted(DEPLOY.rglob("*"))
    if path.is_file()
}
# A script or a text ends a command with one of these. Text in backticks leaves out arguments.
_WORDS = re.compile(r"(?<![\w./-])(`?)laneway ((?:--?)?[a-z][^`|&;#<>\n]*)")
_GO_LIST = re.compile(r'list ("laneway"(?: "[^"]*")*)( \$given\.application)?')
_JSON_LIST = re.compile(r'\["?laneway"?, ([^\]]*)\]')
_VARIABLE = re.compile(r"\bLANEWAY_[A-Z][A-Z_]*[A-Z]\b")


def commands_of(name: str, text: str) -> Iterator[list[str]]:
    """The words after `laneway` of each command that a file contains."""
    for words, application in _GO_LIST.findall(text):
        yield [*shlex.split(words)[1:], *(["app:lw"] if application else [])]
    for given in _JSON_LIST.findall(text):
        yield [each.strip(' "') for each in given.split(",")]
    if name.endswith(".service"):
        for line in re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE):
            yield shlex.split(line)[1:]
    else:
        for is_prose, found in _WORDS.findall(re.sub(r"\{\{.*?\}\}", "value", text)):
            yield [*shlex.split(found), *(["--help"] if is_prose else [])]


COMMANDS = sorted({
    (name, " ".join(words)) for name, text in TEXTS.items() for words in commands_of(name, text)
})  # fmt: skip


def every(command: Any) -> Iterator[Any]:
    """The command and all below it."""
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from every(each)


@pytest.fixture(scope="module")
def program() -> Any:
    """The command line, whose commands only read their arguments."""
    root = get_command(app)
    for command in every(root):
        if not hasattr(command, "commands"):
            command.callback = lambda **_: None
    return root


@pytest.mark.parametrize("name, words", COMMANDS)
def test_program_accepts_every_command_in_deploy(name: str, words: str, program: Any) -> None:
    program.main(shlex.split(words), prog_name="laneway", standalone_mode=False)


def test_commands_of_every_kind_of_file_were_found() -> None:
    kinds = {Path(name).suffix or name for name, _ in COMMANDS}
    assert {".service", ".yaml", ".yml", ".txt", "docker/Dockerfile"} <= kinds
    assert ("helm/laneway/templates/workers.yaml", "worker app:lw") in COMMANDS
    assert ("docker/compose.yaml", "server --no-open") in COMMANDS


def test_every_variable_in_deploy_is_one_of_the_program() -> None:
    known = {f"LANEWAY_{name.upper()}" for name in Settings.model_fields}
    for command in every(get_command(app)):
        for param in command.params:
            known |= {param.envvar} if isinstance(param.envvar, str) else {*(param.envvar or ())}
    named = {(name, each) for name, text in TEXTS.items() for each in _VARIABLE.findall(text)}
    assert ("helm/laneway/templates/workers.yaml", "LANEWAY_METRICS_TOKEN") in named
    assert {each for each in named if each[1] not in known} == set()


def test_keda_scales_by_existing_metrics_of_lanes() -> None:
    labels = {family.name: family.labels for family in FAMILIES}
    (named,) = re.findall(
        r"\$metric := list (.*) \}\}", TEXTS["helm/laneway/templates/workers.yaml"]
    )
    assert [labels[name] for name in shlex.split(named)] == [("lane",), ("lane",)]


def test_pods_get_no_variables_of_services() -> None:
    """A release `laneway` has a service `laneway-server`, hence LANEWAY_SERVER_PORT=tcp://…"""
    assert "\nenableServiceLinks: false\n" in TEXTS["helm/laneway/templates/_helpers.tpl"]


def test_documented_unit_is_the_shipped_one() -> None:
    page = (ROOT / "docs/howto/production.md").read_text("utf-8")
    (block,) = re.findall(r'^```ini title="laneway-worker.service"\n(.*?)^```', page, re.S | re.M)
    assert block == TEXTS["systemd/laneway-worker.service"]
