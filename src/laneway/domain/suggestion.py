"""The end of an error message about a wrong name: the known name that is most like it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggest(given: str, known: Iterable[str]) -> str:
    """`; did you mean max_retries?`, or nothing if no known name is like the given one."""
    close = get_close_matches(given, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""
