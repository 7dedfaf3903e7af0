"""A handler's declaration of its job type arrives unchanged, or is refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from laneway.domain.approval import Approval
from laneway.domain.job_type_policy import TypeRecord
from laneway.domain.json_schema import MAX_BYTES
from laneway.domain.payload import DEFAULT_LIMITS
from laneway.domain.retention import Retention
from laneway.domain.retry import RetryPolicy
from laneway.errors import InvalidInput
from laneway.rpc.declaration import read_declaration, write_declaration

PLAIN = TypeRecord(
    name="greet",
    arguments='{"type": "object"}',
    lane=None,
    priority=None,
    max_retries=3,
    timeout_s=None,
    isolation="async",
    stale="heartbeat",
)


def read(declaration: Any) -> TypeRecord:
    text = declaration if isinstance(declaration, str) else json.dumps(declaration)
    found = read_declaration(
        "greet", text, isolation="async", has_analysis=False, limits=DEFAULT_LIMITS, field="d"
    )
    assert found.refused is None
    return found.record


@pytest.mark.parametrize(
    "record",
    [
        PLAIN,
        replace(PLAIN, lane="fast", priority=-5, max_retries=0, timeout_s=1.5, stale="progress"),
        replace(PLAIN, retry=RetryPolicy(2, 8, 3, 0), limits=("a", "b"), max_age_s=60.0),
        replace(PLAIN, approval=Approval()),
        replace(PLAIN, approval=Approval(below_cost=5, currency="USD", two_person=True)),
        replace(PLAIN, approval=Approval(below_tokens=9, expires=60)),
        replace(PLAIN, retention=Retention(completed=5, cancelled=None, failed=7, count=3)),
    ],
)
def test_declaration_is_read_as_it_was_written(record: TypeRecord) -> None:
    assert read(write_declaration(record)).to_columns() == record.to_columns()


@pytest.mark.parametrize(
    "declaration, place",
    [
        ("[]", "d"),
        ("{", "d"),
        ({"colour": 1}, "d.colour"),
        ({"lane": "Fast!"}, "d.lane"),
        ({"priority": 1e9}, "d.priority"),
        ({"max_retries": -1}, "d.max_retries"),
        ({"timeout_s": 0}, "d.timeout_s"),
        ({"timeout_s": "long"}, "d.timeout_s"),
        ({"stale": "never"}, "d.stale"),
        ({"retry": {"base": -1}}, "d.retry.base"),
        ({"retry": {"pace": 1}}, "d.retry.pace"),
        ({"retry": [1]}, "d.retry"),
        ({"limits": "openai"}, "d.limits"),
        ({"limits": ["a", "a"]}, "d.limits"),
        ({"approval": {"below_cost": 5}}, "d.approval.currency"),
        ({"approval": {"two_person": "yes"}}, "d.approval.two_person"),
        ({"approval": "always"}, "d.approval"),
        ({"approval": {"expires_s": 0}}, "d.approval.expires_s"),
        ({"retention": {"count": -1}}, "d.retention.count"),
        ({"retention": {"completed_s": -1}}, "d.retention.completed_s"),
    ],
)
def test_declaration_is_refused_by_place_and_rule(declaration: Any, place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(declaration)
    assert refused.value.field == place


@pytest.mark.parametrize(
    "schema, reason",
    [("x", "JSON object"), ({"type": "thing"}, "type"), ({"x": "y" * MAX_BYTES}, "at most")],
)
def test_schema_that_is_refused_is_left_out_and_the_rest_is_taken(
    schema: object, reason: str
) -> None:
    found = read_declaration(
        "greet",
        json.dumps({"arguments": schema, "max_retries": 7}),
        isolation="async",
        has_analysis=False,
        limits=DEFAULT_LIMITS,
        field="d",
    )
    assert (found.record.arguments, found.record.max_retries) == ("null", 7)
    assert found.refused is not None
    assert reason in found.refused


@pytest.mark.parametrize(
    "schema, reason",
    [
        ('{"items": ' * 70 + "{}" + "}" * 70, "nested deeper than 64 levels"),
        ('{"items": ' * 100_000 + "{}" + "}" * 100_000, "nested deeper than 64 levels"),
        ('{"maximum": 1' + "0" * 400 + "}", "at most 308 digits"),
        ('{"title": "\\u0000, \\"}"}', "NUL"),
    ],
    ids=["deep", "bottomless", "digits", "nul"],
)
def test_schema_that_cannot_be_kept_refuses_no_more_than_itself(schema: str, reason: str) -> None:
    found = read_declaration(
        "greet",
        f'{{"lane": "fast", "arguments": {schema}, "max_retries": 7}}',
        isolation="async",
        has_analysis=False,
        limits=DEFAULT_LIMITS,
        field="d",
    )
    assert (found.record.arguments, found.record.max_retries) == ("null", 7)
    assert found.record.lane == "fast"
    assert found.refused is not None
    assert reason in found.refused


def test_patterns_are_left_to_the_worker() -> None:
    """Some take forever to match, and the server must not be stopped by one."""
    slow = {"type": "string", "pattern": "^(a+)+$"}
    schema = {
        "type": "object",
        "properties": {"pattern": slow, "items": {"type": "array", "items": slow}},
        "patternProperties": {"^(b+)+$": {"type": "integer"}},
        "additionalProperties": False,
        "$defs": {"patternProperties": slow},
        "default": {"pattern": "kept"},
    }
    schema_read = json.loads(read({"arguments": schema}).arguments)
    plain = {"type": "string"}
    assert schema_read == {
        "type": "object",
        "properties": {"pattern": plain, "items": {"type": "array", "items": plain}},
        "$defs": {"patternProperties": plain},
        "default": {"pattern": "kept"},
    }
