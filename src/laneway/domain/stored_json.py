"""Large JSON that was read from the database and is passed on as text, without being parsed."""

from __future__ import annotations

import re
from typing import Final

from laneway.domain.json_scan import depths, has_bracket_in_string, has_long_number

# Smaller values are parsed: that takes less than a millisecond, and programs can use them.
LARGE: Final = 32 * 1024
# Longer integers are not read by every parser.
_MOST_DIGITS: Final = 1000
# Parsers read some two hundred.
_DEEPEST: Final = 90
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?+\Z)', re.DOTALL)


class StoredJson:
    """JSON text as PostgreSQL writes it, in UTF-8; an answer with it copies it."""

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text


def stored_json(text: str) -> StoredJson | None:
    """Large JSON as it is; None where it is small, or its depth or numbers are endless."""
    if len(text) <= LARGE:
        return None
    data = text.encode()
    return None if has_long_number(data, _MOST_DIGITS) or _is_deep(data) else StoredJson(data)


def _is_deep(text: bytes) -> bool:
    if has_bracket_in_string(text):
        text = _STRING.sub(b"", text)
    return max(depths(text), default=0) > _DEEPEST
