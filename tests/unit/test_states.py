"""The states of a job, as in the contract."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.domain.states import (
    LIVE,
    TERMINAL,
    TRANSITIONS,
    Status,
    Verb,
    can,
    next_statuses,
    render_markdown,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "state-machine.md"

PENDING, AWAITING, WAITING, APPROVED, RUNNING, COMPLETED, FAILED, CANCELLED = Status

CONTRACT = {
    (None, "submit"): {PENDING, AWAITING, APPROVED, WAITING, CANCELLED},
    (WAITING, "arrive"): {APPROVED, PENDING, AWAITING},
    (WAITING, "parent_failed"): {CANCELLED},
    (WAITING, "cancel"): {CANCELLED},
    (WAITING, "max_age"): {FAILED},
    (PENDING, "claim"): {PENDING},
    (PENDING, "analysis_done"): {AWAITING, APPROVED, CANCELLED},
    (PENDING, "analysis_failed"): {PENDING, FAILED, CANCELLED},
    (PENDING, "release"): {PENDING, CANCELLED},
    (PENDING, "snooze"): {PENDING, CANCELLED},
    (PENDING, "request_cancel"): {PENDING},
    (PENDING, "cancel"): {CANCELLED},
    (PENDING, "max_age"): {FAILED, CANCELLED},
    (AWAITING, "approve"): {APPROVED},
    (AWAITING, "reject"): {CANCELLED},
    (AWAITING, "expire"): {CANCELLED},
    (AWAITING, "cancel"): {CANCELLED},
    (AWAITING, "max_age"): {FAILED},
    (APPROVED, "claim"): {RUNNING, PENDING, AWAITING},
    (APPROVED, "cancel"): {CANCELLED},
    (APPROVED, "max_age"): {FAILED},
    (RUNNING, "finish"): {COMPLETED, CANCELLED},
    (RUNNING, "fail"): {APPROVED, FAILED, CANCELLED},
    (RUNNING, "lapse"): {APPROVED, FAILED, CANCELLED},
    (RUNNING, "release"): {APPROVED, CANCELLED},
    (RUNNING, "snooze"): {APPROVED, CANCELLED},
    (RUNNING, "wait"): {WAITING, APPROVED, CANCELLED},
    (RUNNING, "request_cancel"): {RUNNING},
    (RUNNING, "cancel"): {CANCELLED},
    (RUNNING, "max_age"): {FAILED, CANCELLED},
    (FAILED, "retry"): {APPROVED, AWAITING, PENDING, WAITING},
    (CANCELLED, "retry"): {APPROVED, AWAITING, PENDING, WAITING},
}


@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize("status", [None, *Status])
def test_table_allows_exactly_transitions_of_contract(status: Status | None, verb: Verb) -> None:
    expected = CONTRACT.get((status, verb.value), set())
    assert next_statuses(status, verb) == expected
    assert can(status, verb) is bool(expected)
    assert can(status, verb.value) is bool(expected)


def test_rows_are_unique_and_every_guard_has_text() -> None:
    assert len({row[:3] for row in TRANSITIONS}) == len(TRANSITIONS)
    assert all(row.guard for row in TRANSITIONS)


def test_only_an_operators_retry_leaves_a_terminal_status() -> None:
    leaving = {row.verb for row in TRANSITIONS if row.before in TERMINAL}
    assert leaving == {Verb.RETRY}
    assert next_statuses(COMPLETED) == frozenset()


def test_every_status_is_either_live_or_terminal() -> None:
    assert set(Status) == LIVE | TERMINAL
    assert not LIVE & TERMINAL


def test_no_live_status_is_a_dead_end() -> None:
    reaches = set(TERMINAL)
    for _ in Status:
        reaches |= {row.before for row in TRANSITIONS if row.after in reaches and row.before}
    assert reaches == set(Status)


def test_requested_cancel_allows_cancelled_after_every_ending() -> None:
    endings = {row.verb for row in TRANSITIONS if row.before is RUNNING} - {Verb.REQUEST_CANCEL}
    assert all(CANCELLED in next_statuses(RUNNING, verb) for verb in endings)


@given(st.lists(st.tuples(st.sampled_from(Verb), st.integers(0, 9)), max_size=40))
def test_walk_runs_only_after_a_claim_and_never_leaves_completed(
    steps: list[tuple[Verb, int]],
) -> None:
    status: Status | None = None
    for verb, pick in steps:
        before = status
        choices = sorted(next_statuses(status, verb))
        if not choices:
            continue
        status = choices[pick % len(choices)]
        assert before is not COMPLETED
        if status is RUNNING and before is not RUNNING:
            assert (before, verb) == (APPROVED, Verb.CLAIM)
        if before in TERMINAL:
            assert verb is Verb.RETRY


def test_document_is_the_table() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == render_markdown()
