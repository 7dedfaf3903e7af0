"""The lint of words finds what docs/style.md forbids, and nothing else."""

from __future__ import annotations

import pytest

from scripts.word_lint import in_comments, in_markdown, in_python


@pytest.mark.parametrize(
    "source, found",
    [
        ('"""Whoever asks is told."""\n', ["docstring opens with Whoever", "Whoever", "told"]),
        ('def f():\n    """What it does."""\n', ["docstring opens with What"]),
        ("x = 1  # begins anew\n", ["anew"]),
        ("said = 1\n", ["said"]),
        ('raise E("x is no number")\n', ["is no number"]),
        ("# a process of its own\n", ["of its own"]),
        ("# It is no longer there.\n", []),
        ("# `told` is a column\n", []),
        ('x = f(1, "What now?")\n', []),
        ('"""The event log of one job."""\n', []),
    ],
)
def test_words_of_python_are_found(source: str, found: list[str]) -> None:
    assert [what for _, what in in_python(source)] == found


def test_words_of_sql_comments_are_found() -> None:
    source = "select told -- nothing\n  from said -- he waits\n"
    assert list(in_comments(source, "--")) == [(2, "he")]


def test_words_of_prose_are_found_and_code_is_left_out() -> None:
    source = "Jobs are told.\n```python\nsaid = 1\n```\nWork `told` of.\n"
    assert list(in_markdown(source)) == [(1, "told")]
