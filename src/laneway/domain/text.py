"""Text that PostgreSQL can hold and a terminal can show: refused by rule, or escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from laneway.errors import InvalidInput

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
# Controls, formats (bidirectional too), blanks other than the space, private use, non-characters.
# A list, and not str.isprintable: it is the same in SQL (definitions/names.sql) and every Python.
_UNPRINTABLE: Final = re.compile(
    "[\u0000-\u001f\u007f-\u00a0\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ue000-\uf8ff\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f\U000f0000-\U0010ffff]"
)
_PATH_CHARS: Final = 200
_KEY_CHARS: Final = 60

_NUL_RULE: Final = "holds a NUL character (U+0000), which PostgreSQL cannot store"
_SURROGATE_RULE: Final = "holds a lone surrogate, which is not valid Unicode text"


def escape_text(text: str) -> str:
    """Any text made safe for PostgreSQL: NUL to a visible `\\u0000`, lone surrogates to U+FFFD."""
    if "\x00" in text:
        text = text.replace("\x00", "\\u0000")
    if not text.isascii():
        text = _SURROGATE.sub("\ufffd", text)
    return text


def visible(text: object) -> str:
    """Text on one line, with control characters written out instead of obeyed."""
    said = str(text)
    if said.isprintable():
        return said
    return "".join(c if c.isprintable() else _written_out(c) for c in said)


def _written_out(character: str) -> str:
    if character in "\r\n\t":
        return " "
    return character.encode("unicode_escape").decode("ascii")


def is_printable(text: str) -> bool:
    """Whether a name has no character that nobody sees, or that changes how others are shown."""
    return (text.isascii() and text.isprintable()) or _UNPRINTABLE.search(text) is None


def check_text(value: object, field: str, *, max_bytes: int) -> str:
    """A non-empty text PostgreSQL can hold, of at most `max_bytes` bytes of UTF-8."""
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be text, not {type(value).__name__}")
    if not value:
        raise InvalidInput(field, "must not be empty")
    rule = text_problem(value)
    if rule is not None:
        raise InvalidInput(field, rule)
    if len(value) > max_bytes or len(value.encode()) > max_bytes:
        raise InvalidInput(field, f"must be at most {max_bytes} bytes long")
    return value


def check_name(value: object, field: str, *, max_bytes: int) -> str:
    """The name of whoever acts: text without white space around it, as no eye sees that."""
    name = check_text(value, field, max_bytes=max_bytes)
    if name != name.strip():
        raise InvalidInput(field, "must not begin or end with a blank")
    return name


def text_problem(text: str) -> str | None:
    """The rule a text breaks, if any."""
    if "\x00" in text:
        return _NUL_RULE
    if not text.isascii() and _SURROGATE.search(text):
        return _SURROGATE_RULE
    return None


def json_path(field: str, keys: Iterable[object]) -> str:
    """`payload.items[3].name`: the place of a value, safe to print and to store."""
    parts = [field]
    for key in keys:
        if isinstance(key, int):
            parts.append(f"[{key}]")
        elif isinstance(key, str) and len(key) <= _KEY_CHARS and _IDENTIFIER.match(key):
            parts.append(f".{key}")
        else:
            parts.append(f"[{json.dumps(escape_text(str(key)[:_KEY_CHARS]), ensure_ascii=False)}]")
    path = "".join(parts)
    return path if len(path) <= _PATH_CHARS else path[:_PATH_CHARS] + "…"
