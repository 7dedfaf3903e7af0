"""Looks at JSON text as a whole, at the speed of a memory copy: before it is parsed, or instead."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final

_DIGITS: Final = b"0123456789"
_OPENING, _CLOSING = b"[{", b"]}"
# Every digit as 0, E as e.
_ALIKE: Final = bytes.maketrans(_DIGITS + b"E", b"0" * 10 + b"e")
_STEPS: Final = bytes.maketrans(_OPENING + _CLOSING, b"\x01\x01\xff\xff")
# Decimal digits that every float keeps.
_EXACT_DIGITS: Final = 15
_ZERO_AT_END: Final = re.compile(rb"\.[0-9]++(?<=[0-9]0)")
_NEITHER: Final = bytes(code for code in range(256) if code not in _OPENING + _CLOSING + b'"')
_OTHERS: Final = bytes(code for code in range(256) if code not in _OPENING + _CLOSING)


def has_long_number(text: bytes, max_digits: int) -> bool:
    """Whether more digits than that follow each other anywhere, in strings too."""
    return len(text) > max_digits and b"0" * (max_digits + 1) in text.translate(_ALIKE)


def is_rewritten_number(text: bytes) -> bool:
    """Whether a number may be written otherwise once it was read, in strings too.

    A float keeps 15 digits, an exponent is written out, and zeros at the end of a fraction go.
    """
    alike = text.translate(_ALIKE, b".")
    return b"0" * (_EXACT_DIGITS + 1) in alike or b"0e" in alike or bool(_ZERO_AT_END.search(text))


def has_bracket_in_string(text: bytes) -> bool:
    """Whether a string of this JSON holds a bracket or brace."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # With the rest taken out, the quotes of other strings stand beside each other.
    return b'"' in text.translate(None, _NEITHER).replace(b'""', b"")


def depths(text: bytes) -> list[int]:
    """How many arrays and objects are open after each bracket; those in strings are counted too."""
    return list(accumulate(memoryview(text.translate(_STEPS, _OTHERS)).cast("b")))
