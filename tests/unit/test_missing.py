"""A name that does not exist: the message says what exists, and how to create it."""

from __future__ import annotations

import pytest

from laneway.domain.missing import hint, missing


def test_error_has_kind_and_name() -> None:
    error = missing("lane", "vidoe")
    assert (str(error), error.kind, error.name) == ("no lane vidoe", "lane", "vidoe")


@pytest.mark.parametrize(
    "known, names",
    [
        ([], "none exists yet"),
        (["audio", "video", "default"], "existing: video and 2 more"),
        (["b", "a"], "existing: a, b"),
        ([f"vide{n}" for n in range(9)], "existing: vide8, vide7, vide6, vide5, vide4 and 4 more"),
    ],
)
def test_nearest_names_are_named(known: list[str], names: str) -> None:
    assert hint("lane", "vidoe", known) == f"{names}; to create it: `laneway lanes create vidoe`"


def test_command_quotes_names_that_a_shell_would_read() -> None:
    assert "`laneway principals create 'a; b'`" in hint("principal", "a; b", [])
