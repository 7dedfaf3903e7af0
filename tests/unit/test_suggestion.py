"""An error about a wrong name ends with the known name that is most like it."""

from __future__ import annotations

from laneway.domain.suggestion import suggest


def test_similar_name_is_suggested() -> None:
    assert suggest("max_retry", ["lane", "max_retries"]) == "; did you mean max_retries?"


def test_nothing_is_suggested_without_a_similar_name() -> None:
    assert suggest("colour", ["lane", "max_retries"]) == ""
    assert suggest("colour", []) == ""
