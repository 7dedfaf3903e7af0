"""Places in a JSON text that is too deep for parsers, found without recursion."""

from __future__ import annotations

import re
from typing import Final

from laneway.domain.text import json_path

# An unclosed string extends to the end; otherwise each quote in it would be tried in turn.
_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?+\Z)'
_TOKEN: Final = re.compile(rf"{_STRING}|[\[\]{{}},:]", re.DOTALL)
_MEMBER: Final = re.compile(rf"{_STRING}|[\[\]{{}}:]|[-+.\w]++", re.DOTALL)
_LONGEST_KEY: Final = 100


def deep_path(text: str | bytes, field: str, most: int) -> str:
    """The path of the first array or object below `most` levels; else the field itself."""
    return json_path(field, _deep_place(str(text), most))


def top_value(text: str, key: str) -> str | None:
    """The text of a key's value at the top of an object; None for arrays and objects."""
    depth, last, is_next = 0, "", False
    for token in _MEMBER.finditer(text):
        match token[0]:
            case "[" | "{":
                depth, is_next = depth + 1, False
            case "]" | "}":
                depth -= 1
            case ":":
                is_next = depth == 1 and last == f'"{key}"'
            case scalar if is_next:
                return scalar
            case scalar:
                last = scalar
    return None


def without_value(text: str, key: str) -> str:
    """The text of an object with null for the value of a key at its top."""
    depth, last, start = 0, "", 0
    pieces: list[str] = []
    is_value = False
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
            case "," | "]" | "}" as found:
                depth -= found != ","
                if is_value and depth <= 1 and (found == "," or depth == 0):
                    pieces.append("null")
                    start, is_value = token.start(), False
            case ":" if depth == 1 and last == f'"{key}"' and not is_value:
                pieces.append(text[start : token.end()])
                is_value = True
            case ":":
                pass
            case quoted:
                last = quoted
    return "".join(pieces) + text[start:] if not is_value else text


def _deep_place(text: str, most: int) -> list[str | int]:
    """Keys and indexes down to the first array or object below `most` levels.

    Empty if there is none. The rest of the text is not read.
    """
    # The index in each open array, the key in each open object.
    place: list[str | int] = []
    string, is_key = "", False
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "[" | "{" as opened:
                if len(place) >= most:
                    return place
                place.append(0 if opened == "[" else "")
                is_key = opened == "{"
            case "]" | "}":
                if place:
                    place.pop()
                is_key = False
            case ",":
                if place and isinstance(place[-1], int):
                    place[-1] += 1
                else:
                    is_key = True
            case ":":
                if place and is_key:
                    place[-1] = string[:_LONGEST_KEY]
                is_key = False
            case quoted:
                string = quoted[1:-1]
    return []
