"""Fast scans of JSON text as a whole, before it is parsed or instead."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final

_DIGITS: Final = b"0123456789"
_OPENING, _CLOSING = b"[{", b"]}"
# Maps every digit to 0, and E to e.
_NORMALIZED: Final = bytes.maketrans(_DIGITS + b"E", b"0" * 10 + b"e")
_STEPS: Final = bytes.maketrans(_OPENING + _CLOSING, b"\x01\x01\xff\xff")
# A float keeps at least as many decimal digits.
_EXACT_DIGITS: Final = 15
_ZERO_AT_END: Final = re.compile(rb"\.[0-9]++(?<=[0-9]0)")
_NOT_BRACKET_OR_QUOTE: Final = bytes(
    code for code in range(256) if code not in _OPENING + _CLOSING + b'"'
)
_NOT_BRACKET: Final = bytes(code for code in range(256) if code not in _OPENING + _CLOSING)


def has_long_number(text: bytes, max_digits: int) -> bool:
    """Whether more than `max_digits` digits follow each other anywhere, also in strings."""
    return len(text) > max_digits and b"0" * (max_digits + 1) in text.translate(_NORMALIZED)


def is_rewritten_number(text: bytes) -> bool:
    """Whether reading and writing may change the text of a number, also in strings.

    A float keeps 15 digits, an exponent is written out, and trailing zeros are dropped.
    """
    alike = text.translate(_NORMALIZED, b".")
    return b"0" * (_EXACT_DIGITS + 1) in alike or b"0e" in alike or bool(_ZERO_AT_END.search(text))


def has_bracket_in_string(text: bytes) -> bool:
    """Whether a string of this JSON contains a bracket or brace."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Without all other characters, the quotes of a string without brackets are adjacent.
    return b'"' in text.translate(None, _NOT_BRACKET_OR_QUOTE).replace(b'""', b"")


def depths(text: bytes) -> list[int]:
    """The number of open arrays and objects after each bracket, counting those in strings."""
    return list(accumulate(memoryview(text.translate(_STEPS, _NOT_BRACKET)).cast("b")))
