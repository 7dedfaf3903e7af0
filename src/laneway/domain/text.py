"""Text that PostgreSQL can store and a terminal can show: checks and escapes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from laneway.errors import InvalidInput

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
# Controls, formats (also bidirectional), blanks other than the space, private use, non-characters.
# Not str.isprintable: this list is the same in SQL (definitions/names.sql) and every Python.
_UNPRINTABLE: Final = re.compile(
    "[\u0000-\u001f\u007f-\u00a0\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ue000-\uf8ff\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f\U000f0000-\U0010ffff]"
)
_PATH_CHARS: Final = 200
_KEY_CHARS: Final = 60
_VALUE_CHARS: Final = 60

_NUL_RULE: Final = "contains a NUL character (U+0000), which PostgreSQL cannot store"
_SURROGATE_RULE: Final = "contains a lone surrogate, which is not valid Unicode text"


def escape_text(text: str) -> str:
    """The text for PostgreSQL: NUL as a visible `\\u0000`, lone surrogates as U+FFFD."""
    if "\x00" in text:
        text = text.replace("\x00", "\\u0000")
    if not text.isascii():
        text = _SURROGATE.sub("\ufffd", text)
    return text


def visible(text: object) -> str:
    """Text on one line, with control characters escaped."""
    line = str(text)
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else _escaped(c) for c in line)


def _escaped(character: str) -> str:
    if character in "\r\n\t":
        return " "
    return character.encode("unicode_escape").decode("ascii")


def shown(value: object) -> str:
    """A wrong value for an error message, cut to a few words."""
    try:
        text = repr(value)
    except Exception:
        # Integers of thousands of digits have no repr.
        return f"a value of type {type(value).__name__}"
    return escape_text(text if len(text) <= _VALUE_CHARS else f"{text[:_VALUE_CHARS]}…")


def is_printable(text: str) -> bool:
    """Whether a name has no invisible character, and none that changes how others are shown."""
    return (text.isascii() and text.isprintable()) or _UNPRINTABLE.search(text) is None


def check_text(value: object, field: str, *, max_bytes: int) -> str:
    """A non-empty text that PostgreSQL can store, of at most `max_bytes` bytes of UTF-8."""
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
    """An actor's name: text without white space around it, which would be invisible."""
    name = check_text(value, field, max_bytes=max_bytes)
    if name != name.strip():
        raise InvalidInput(field, "must not begin or end with a blank")
    return name


def text_problem(text: str) -> str | None:
    """The rule that a text breaks, if any."""
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


def log_words(values: Mapping[str, object]) -> str:
    """Names and values for a log line: `max_slots=2 enabled=true`."""
    return " ".join(f"{name}={_log_word(value)}" for name, value in values.items())


def _log_word(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and value and value.isprintable() and " " not in value:
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)
