"""Laws of completion: names that exist, quickly, and silence otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from laneway.cli import completion
from laneway.cli.main import app
from tests.support.job_factory import JobFactory
from tests.support.warm_program import WarmProgram


def variables(line: str) -> dict[str, str]:
    return {
        "_LANEWAY_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }


@pytest.fixture
def complete(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """The words that a shell offers for the last word of a line, however long it takes."""
    monkeypatch.setattr(completion, "LONGEST_S", 60.0)

    def complete(line: str) -> list[str]:
        env = {**variables(line), "LANEWAY_DATABASE_URL": dsn}
        shown = CliRunner().invoke(app, [], prog_name="laneway", env=env)
        assert shown.stderr == ""
        return list(shown.stdout.split())

    return complete


@pytest.mark.parametrize(
    "line, words",
    [
        ("laneway lanes drain ma", ["maintenance"]),
        ("laneway freeze sy", ["system"]),
        ("laneway jobs ls --lane int", ["interactive"]),
        ("laneway jobs ls --status qu", ["queued"]),
        ("laneway jobs ls --status a", ["analysing", "awaiting_approval", "approved",
                                         "analyzing", "available", "active"]),
        ("laneway jobs ls --type ing", ["ingestion"]),
        ("laneway jobs submit ing", ["ingestion"]),
    ],
)  # fmt: skip
def test_names_are_completed(
    complete: Callable[[str], list[str]], factory: JobFactory, line: str, words: list[str]
) -> None:
    factory.publish("ingestion")
    assert complete(line) == words


def test_job_ids_are_completed(complete: Callable[[str], list[str]], factory: JobFactory) -> None:
    old = factory.submit()
    newer = [factory.submit() for _ in range(21)]
    shown = complete("laneway jobs show ")
    assert str(newer[-1]) in shown
    assert str(old) not in shown
    assert complete(f"laneway jobs show {str(old)[:-1]}") == [str(old)]


@pytest.mark.parametrize("word", ["lanes drain ", "jobs show ", "jobs submit "])
def test_completion_is_silent_without_a_database(word: str, warm_program: WarmProgram) -> None:
    env = {
        **os.environ,
        **variables(f"laneway {word}"),
        "LANEWAY_DATABASE_URL": "postgresql://absent@127.0.0.1:1/none",
    }
    asked = warm_program.run(env=env)
    assert (asked.stdout.strip(), asked.stderr) == ("", "")
