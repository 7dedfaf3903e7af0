"""The default of a handler's parameter, as its published schema shows it."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, to_jsonable_python

from laneway.domain.text import escape_text
from laneway.errors import InvalidInput

_SHOWN_CHARS: Final = 60


def default_json(place: str, hint: Any, default: object) -> object:
    """A default as JSON; InvalidInput if it has no JSON form, so that it cannot be submitted."""
    try:
        try:
            shown = to_jsonable_python(default, inf_nan_mode="constants")
        except PydanticSerializationError:
            shown = TypeAdapter(hint).dump_python(default, mode="json", warnings=False)
        json.dumps(shown, allow_nan=False)
    except Exception:
        written = escape_text(repr(default))[:_SHOWN_CHARS]
        rule = f"its default {written} has no JSON form: use None, and replace it in the handler"
        raise InvalidInput(place, rule) from None
    return shown
