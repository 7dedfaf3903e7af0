"""The declaration of a job type, sent as JSON from a worker to a server."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from laneway.domain.arguments import check_schema
from laneway.domain.job_type_policy import (
    POLICY_FIELDS,
    Isolation,
    TypeRecord,
    decode_policy,
    encode_policy,
)
from laneway.domain.json_place import without_value
from laneway.domain.payload import PayloadLimits, decode
from laneway.errors import InvalidInput

_FIELDS: Final = POLICY_FIELDS | {"arguments"}
_MAX_REASON: Final = 200
# Keywords of JSON Schema whose keys are the user's names, and those that hold no schema.
_NAMING: Final = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
_LITERAL: Final = frozenset({"const", "enum", "default", "examples", "required"})


class Declaration(NamedTuple):
    """A declared job type; `refused` says why its record has no schema of arguments."""

    record: TypeRecord
    refused: str | None


def write_declaration(record: TypeRecord) -> str:
    """The record as JSON; `read_declaration` reverses it."""
    fields = {"arguments": json.loads(record.arguments), **encode_policy(record)}
    return json.dumps({name: value for name, value in fields.items() if value is not None})


def read_declaration(
    name: str,
    text: str,
    *,
    isolation: Isolation,
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
    arguments, refused = _arguments(given.get("arguments"))
    try:
        policy = decode_policy(given, isolation)
    except InvalidInput as error:
        raise InvalidInput(f"{field}.{error.field}", error.rule) from None
    record = TypeRecord(name=name, arguments=arguments, has_analysis=has_analysis, **policy.policy)
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


def _object(value: object, field: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(field, "must be a JSON object")
    return value
