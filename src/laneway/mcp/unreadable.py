"""Errors for messages that are not valid JSON; the MCP package's error names no place or rule."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic_core import from_json

from laneway.domain.broken_json import broken_rule
from laneway.domain.json_place import top_value
from laneway.domain.payload import PayloadLimits
from laneway.errors import InvalidInput

_PARSE_ERROR: Final = -32700
_INVALID_PARAMS: Final = -32602


def unreadable(message: bytes, limits: PayloadLimits) -> dict[str, Any] | None:
    """A JSON-RPC error with the place and the rule; None if the message can be parsed.

    It has the id of the message if one can be found; otherwise the client would wait forever.
    """
    try:
        from_json(message)
    except ValueError:
        # params.arguments.payload
        broken = broken_rule(message, limits, "message", above=3)
        return refusal(message, broken, _PARSE_ERROR)
    return None


def refusal(message: bytes, broken: InvalidInput, code: int = _INVALID_PARAMS) -> dict[str, Any]:
    """A JSON-RPC error with the place and the rule, and the id of the message if it has one."""
    error = {"code": code, "message": f"{broken.code}: {broken}"}
    return {"jsonrpc": "2.0", "id": _id_of(message), "error": error}


def _id_of(message: bytes) -> str | int | None:
    found = top_value(message.decode("utf-8", "replace"), "id")
    try:
        value = json.loads(found or "null")
    except ValueError:
        return None
    return value if isinstance(value, str) or type(value) is int else None
