"""The rule that a JSON text breaks if a typed schema could not read it."""

from __future__ import annotations

from dataclasses import replace

from laneway.domain.payload import PayloadLimits, decode
from laneway.errors import InvalidInput


def broken_rule(body: bytes, limits: PayloadLimits, field: str, *, above: int) -> InvalidInput:
    """The place and the rule, for a text with `above` levels around its payload."""
    bounds = replace(limits, max_bytes=len(body) + 1, max_depth=limits.max_depth + above)
    try:
        decode(body, bounds, field=field)
    except InvalidInput as found:
        if found.rule.endswith(f"deeper than {bounds.max_depth} levels"):
            return InvalidInput(found.field, f"is nested deeper than {limits.max_depth} levels")
        return found
    return InvalidInput(field, "cannot be read as JSON")
