"""Laws of completion: names that exist, quickly, and silence otherwise."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.cli.conftest import PROGRAM
from tests.support.job_factory import JobFactory


def complete(line: str, **env: str) -> list[str]:
    """The words that a shell offers for the last word of a line."""
    asked = subprocess.run(
        PROGRAM,
        env={
            **os.environ,
            **env,
            "_PYTHON _M LANEWAY_COMPLETE": "complete_bash",
            "_LANEWAY_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert asked.stderr == ""
    return asked.stdout.split()


@pytest.mark.parametrize(
    "line, words",
    [
        ("laneway lanes drain ma", ["maintenance"]),
        ("laneway freeze sy", ["system"]),
        ("laneway jobs ls --lane int", ["interactive"]),
        ("laneway jobs ls --status qu", ["queued"]),
        ("laneway jobs ls --status a", ["awaiting_approval", "approved", "analysing",
                                         "analyzing", "available", "active"]),
        ("laneway jobs ls --type ing", ["ingestion"]),
        ("laneway jobs submit ing", ["ingestion"]),
    ],
)  # fmt: skip
def test_names_are_completed(dsn: str, factory: JobFactory, line: str, words: list[str]) -> None:
    factory.publish("ingestion")
    assert complete(line, LANEWAY_DATABASE_URL=dsn) == words


def test_job_ids_are_completed(dsn: str, factory: JobFactory) -> None:
    old = factory.submit()
    newer = [factory.submit() for _ in range(21)]
    shown = complete("laneway jobs show ", LANEWAY_DATABASE_URL=dsn)
    assert str(newer[-1]) in shown
    assert str(old) not in shown
    assert complete(f"laneway jobs show {str(old)[:-1]}", LANEWAY_DATABASE_URL=dsn) == [str(old)]


@pytest.mark.parametrize("word", ["lanes drain ", "jobs show ", "jobs submit "])
def test_completion_is_silent_without_a_database(word: str) -> None:
    unreachable = "postgresql://absent@127.0.0.1:1/none"
    assert complete(f"laneway {word}", LANEWAY_DATABASE_URL=unreachable) == []
