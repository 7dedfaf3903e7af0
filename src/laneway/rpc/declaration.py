"""The declaration of a job type, sent as JSON from a worker to a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from laneway.domain.approval import Approval
from laneway.domain.arguments import check_schema
from laneway.domain.duration import check_duration, seconds_of
from laneway.domain.job import MAX_RETRIES_RANGE, PRIORITY_RANGE
from laneway.domain.json_place import without_value
from laneway.domain.lane import check_lane_name
from laneway.domain.payload import PayloadLimits, decode
from laneway.domain.retention import Retention
from laneway.domain.retry import RetryPolicy
from laneway.errors import InvalidInput
from laneway.store.workers import TypeRecord

_FIELDS: Final = frozenset(
    {
        *("arguments", "lane", "priority", "max_retries", "timeout_s", "stale", "retry", "limits"),
        *("approval", "max_age_s", "retention"),
    }
)
_APPROVAL: Final = ("below_cost", "currency", "below_tokens", "two_person", "expires_s")
_RETENTION: Final = ("completed_s", "cancelled_s", "failed_s", "count")
_MAX_LIMITS: Final = 100
_MAX_REASON: Final = 200
# Keywords of JSON Schema whose keys are the user's names, and those that hold no schema.
_NAMING: Final = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
_LITERAL: Final = frozenset({"const", "enum", "default", "examples", "required"})

T = TypeVar("T")


class Declaration(NamedTuple):
    """A declared job type; `refused` says why its record has no schema of arguments."""

    record: TypeRecord
    refused: str | None


def write_declaration(record: TypeRecord) -> str:
    """The record as JSON; `read_declaration` reverses it."""
    fields: dict[str, object] = {
        "arguments": json.loads(record.arguments),
        "lane": record.lane,
        "priority": record.priority,
        "max_retries": record.max_retries,
        "timeout_s": record.timeout_s,
        "stale": record.stale,
        "retry": {
            name: getattr(record.retry, name) for name in ("base", "cap", "factor", "jitter")
        },
        "limits": list(record.limits),
        "approval": None if record.approval is None else _written(record.approval),
        "max_age_s": record.max_age_s,
        "retention": {
            "completed_s": _age(record.retention.completed),
            "cancelled_s": _age(record.retention.cancelled),
            "failed_s": _age(record.retention.failed),
            "count": record.retention.count,
        },
    }
    return json.dumps({name: value for name, value in fields.items() if value is not None})


def _written(approval: Approval) -> dict[str, object]:
    below = approval.below_cost
    return {
        "below_cost": below if below is None or isinstance(below, int) else float(below),
        "currency": approval.currency,
        "below_tokens": approval.below_tokens,
        "two_person": approval.two_person,
        "expires_s": approval.expires_s,
    }


def _age(age: object) -> float | None:
    return None if age is None else seconds_of(age)


def read_declaration(
    name: str,
    text: str,
    *,
    isolation: str,
    has_analysis: bool,
    limits: PayloadLimits,
    field: str,
) -> Declaration:
    """Reads a declared job type; InvalidInput names the invalid part below `field`."""
    unreadable: str | None = None
    try:
        value = decode(text, limits, field=field)
    except InvalidInput as error:
        if not error.field.startswith(f"{field}.arguments"):
            raise
        unreadable = error.rule[:_MAX_REASON]
        value = decode(without_value(text, "arguments"), limits, field=field)
    given = _object(value, field)
    for key in given:
        if key not in _FIELDS:
            raise InvalidInput(f"{field}.{key[:60]}", f"is not one of {', '.join(sorted(_FIELDS))}")
    lane, stale = given.get("lane"), given.get("stale", "heartbeat")
    if stale not in ("heartbeat", "progress"):
        raise InvalidInput(f"{field}.stale", "must be heartbeat or progress")
    arguments, refused = _arguments(given.get("arguments"))
    priority = given.get("priority")
    retries = given.get("max_retries", 3)
    record = TypeRecord(
        name=name,
        arguments=arguments,
        lane=None if lane is None else check_lane_name(lane, f"{field}.lane"),
        priority=None
        if priority is None
        else _whole(priority, f"{field}.priority", *PRIORITY_RANGE),
        max_retries=_whole(retries, f"{field}.max_retries", *MAX_RETRIES_RANGE),
        timeout_s=_duration(given.get("timeout_s"), f"{field}.timeout_s"),
        isolation=isolation,
        stale=stale,
        retry=_parts(given, "retry", field, ("base", "cap", "factor", "jitter"), _retry),
        limits=_limits(given.get("limits", ()), f"{field}.limits"),
        has_analysis=has_analysis,
        approval=_approval(given, field),
        max_age_s=_duration(given.get("max_age_s"), f"{field}.max_age_s"),
        retention=_parts(given, "retention", field, _RETENTION, _retention),
    )
    return Declaration(record, unreadable or refused)


def _arguments(schema: object) -> tuple[str, str | None]:
    """The schema to publish; otherwise "null" and the reason."""
    if schema is None:
        return "null", None
    try:
        text = json.dumps(_without_patterns(_object(schema, "arguments")))
        check_schema(text, "arguments")
    except InvalidInput as error:
        return "null", error.rule[:_MAX_REASON]
    return text, None


def _without_patterns(schema: Any, *, are_names: bool = False) -> Any:
    """The schema without patterns: the worker checks those.

    Some patterns take forever to match, and a remote worker must not be able to stop the server.
    """
    if isinstance(schema, list):
        return [_without_patterns(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = schema
    if not are_names:
        dropped = {"pattern", "patternProperties"} & schema.keys()
        if "patternProperties" in dropped:
            dropped |= {"additionalProperties", "unevaluatedProperties"}
        kept = {key: value for key, value in schema.items() if key not in dropped}
    return {
        key: _without_patterns(value, are_names=not are_names and key in _NAMING)
        if key not in _LITERAL or are_names
        else value
        for key, value in kept.items()
    }


def _retry(given: Mapping[str, Any]) -> RetryPolicy:
    return RetryPolicy(**given)


def _retention(given: Mapping[str, Any]) -> Retention:
    return Retention(**{key.removesuffix("_s"): value for key, value in given.items()})


def _approval(given: Mapping[str, Any], field: str) -> Approval | None:
    policy = given.get("approval")
    if policy is None or policy is False:
        return None
    if policy is True:
        return Approval()
    return _parts(given, "approval", field, _APPROVAL, _approval_of)


def _approval_of(given: Mapping[str, Any]) -> Approval:
    parts = {
        "expires" if key == "expires_s" else key: value
        for key, value in given.items()
        if value is not None
    }
    if not isinstance(parts.get("two_person", False), bool):
        raise InvalidInput("two_person", "must be true or false")
    return Approval(**parts)


def _parts(
    given: Mapping[str, Any],
    name: str,
    field: str,
    keys: tuple[str, ...],
    make: Callable[[Mapping[str, Any]], T],
) -> T:
    """The value of a nested object of the declaration; InvalidInput names the invalid part."""
    path = f"{field}.{name}"
    nested = given.get(name)
    parts = {} if nested is None else _object(nested, path)
    for key in parts:
        if key not in keys:
            raise InvalidInput(f"{path}.{key[:60]}", f"is not one of {', '.join(keys)}")
    try:
        return make(parts)
    except InvalidInput as error:
        inner = error.field.removeprefix(f"{name}.")
        key = inner if inner in keys else f"{inner}_s"
        raise InvalidInput(f"{path}.{key}", error.rule) from None


def _object(value: object, field: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(field, "must be a JSON object")
    return value


def _whole(value: object, field: str, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidInput(field, f"must be a whole number from {low} to {high}")
    return value


def _duration(value: object, field: str) -> float | None:
    return None if value is None else check_duration(value, field)


def _limits(value: object, field: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or len(value) > _MAX_LIMITS:
        raise InvalidInput(field, f"must be a list of at most {_MAX_LIMITS} names")
    names = {check_lane_name(one, f"{field}[{i}]") for i, one in enumerate(value)}
    if len(names) < len(value):
        raise InvalidInput(field, "must not name anything twice")
    return tuple(sorted(names))
