"""Large JSON from the database, passed on as text without parsing."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from laneway.domain.json_scan import depths, has_bracket_in_string, has_long_number

# Smaller values are parsed, which takes less than a millisecond.
LARGE: Final = 32 * 1024
# Some parsers do not read longer integers.
_MAX_DIGITS: Final = 1000
# Parsers read about two hundred levels.
_DEEPEST: Final = 90
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?+\Z)', re.DOTALL)


class StoredJson:
    """JSON text as PostgreSQL writes it, in UTF-8; responses copy it."""

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text


def stored_json(text: str) -> StoredJson | None:
    """The text if it is large; None if it is small, too deep, or has too long numbers."""
    if len(text) <= LARGE:
        return None
    data = text.encode()
    return None if has_long_number(data, _MAX_DIGITS) or _is_deep(data) else StoredJson(data)


def read_stored(text: str, *, as_text: bool) -> Any:
    """The JSON value, or its text if Python cannot parse it: one row must not break a list.

    With `as_text`, a large value is `StoredJson`.
    """
    stored = stored_json(text) if as_text else None
    if stored is not None:
        return stored
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _is_deep(text: bytes) -> bool:
    if has_bracket_in_string(text):
        text = _STRING.sub(b"", text)
    return max(depths(text), default=0) > _DEEPEST
