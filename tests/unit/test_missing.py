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
        ([], "none exists yet; to"),
        (["audio", "video", "default"], "did you mean video? To"),
        (["b", "a"], "existing: a, b; to"),
        (
            [f"lane-{n}" for n in range(7)],
            ("existing: lane-0, lane-1, lane-2, lane-3, lane-4 and 2 more; to"),
        ),
        ([f"vide{n}" for n in range(9)], "did you mean vide8? To"),
    ],
)
def test_nearest_names_are_named(known: list[str], names: str) -> None:
    assert hint("lane", "vidoe", known) == f"{names} create it: `laneway lanes create vidoe`"


def test_command_quotes_names_that_a_shell_would_read() -> None:
    assert "`laneway principals create 'a; b'`" in hint("principal", "a; b", [])
