"""An error about a wrong name ends with the known name that is most like it."""

from __future__ import annotations

import pytest

from laneway.domain.suggestion import suggest, suggest_option


def test_similar_name_is_suggested() -> None:
    assert suggest("max_retry", ["lane", "max_retries"]) == "; did you mean max_retries?"


def test_nothing_is_suggested_without_a_similar_name() -> None:
    assert suggest("colour", ["lane", "max_retries"]) == ""
    assert suggest("colour", []) == ""


@pytest.mark.parametrize(
    "given, known, expected",
    [
        ("countdown", ["conn", "delay"], "; did you mean delay?"),
        ("eta", ["run_at"], "; did you mean run_at?"),
        ("retries", ["max_retries"], "; did you mean max_retries?"),
        ("queue", ["lane"], "; did you mean lane?"),
        ("rate_limit", ["limits"], "; did you mean limits?"),
        ("autoretry_for", ["retry"], "; did you mean retry?"),
        ("expires", ["delay"], "; max_age is an option of @lw.handler"),
        ("countdown", ["lane"], "; delay is an option of submit"),
        ("queue", ["delay"], "; a submit cannot choose the lane: lane is an option of @lw.handler"),
        ("priorty", ["priority"], "; did you mean priority?"),
    ],
)
def test_words_of_other_queues_lead_to_our_options(
    given: str, known: list[str], expected: str
) -> None:
    assert suggest_option(given, known) == expected
