"""Laws of audit entries: filters, and hidden secrets."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laneway.domain import verb_rules
from laneway.domain.audit import AuditFilter
from laneway.domain.redaction import DEEPEST, HIDDEN_FIELD, redact_fields
from laneway.errors import InvalidInput


@pytest.mark.parametrize(
    "name",
    [
        "password", "Passwd", "db_password", "passphrase", "secret", "client-secret", "token",
        "accessToken", "api_key", "apikey", "API-KEY", "private_key", "Authorization", "cookie",
        "credentials",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", ["s3cret", 1234, ["s3cret"], {"inner": "s3cret"}])
def test_secret_names_are_hidden_at_any_depth(name: str, value: object) -> None:
    for state in ({name: value}, {"a": {name: value}}, {"a": [{"b": ({name: value},)}]}):
        assert HIDDEN_FIELD in json.dumps(redact_fields(state))
        assert "s3cret" not in json.dumps(redact_fields(state))
        assert "1234" not in json.dumps(redact_fields(state))


def test_non_secret_names_are_kept() -> None:
    state = {"max_slots": 3, "key": "k", "concurrency_key": "doc-1", "tags": ["password"]}
    assert redact_fields(state) == state
    assert redact_fields({"token": None, "has_password": True}) == {
        "token": None,
        "has_password": True,
    }


def test_state_is_not_changed_by_being_kept() -> None:
    state = {"login": {"password": "p"}}
    redact_fields(state)
    assert state == {"login": {"password": "p"}}


VALUES = st.floats() | st.integers() | st.text() | st.none()


@settings(max_examples=30)
@given(VALUES, st.text())
def test_any_state_is_json_that_postgresql_takes(value: object, name: str) -> None:
    json.dumps(redact_fields({name: value, "a": [{name: value}]}), allow_nan=False)


def test_state_too_deep_to_walk_is_cut_off() -> None:
    state: dict[str, object] = {}
    for _ in range(100 * DEEPEST):
        state = {"a": state}
    assert "[too deep]" in json.dumps(redact_fields(state))


@pytest.mark.parametrize(
    "field,value",
    [
        ("actor", ""),
        ("action", "a\x00b"),
        ("kind", 7),
        ("door", "window"),
        ("outcome", "maybe"),
        ("since", datetime(2030, 1, 1)),  # noqa: DTZ001 - without a zone on purpose
        ("since", "2030-01-01"),
        ("newer_than", -1.0),
        ("newer_than", float("nan")),
        ("newer_than", True),
    ],
)
def test_filter_that_breaks_a_rule_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=field):
        AuditFilter(**{field: value}).check()  # type: ignore[arg-type]


def test_filter_of_everything_is_accepted() -> None:
    AuditFilter(
        actor="ann", door="cli", action="job.cancelled", kind="job", name="x", workspace="w",
        outcome="done", since=datetime(2030, 1, 1, tzinfo=UTC), newer_than=60,
    ).check()  # fmt: skip


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1" * 20, "²"])
def test_invalid_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        verb_rules.position(cursor)
