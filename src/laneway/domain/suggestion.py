"""The end of an error message about a wrong name: the known name that is most like it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Final

# Options of other job queues, and ours that do the same.
_OTHER_WORDS: Final = {
    "autoretry_for": "retry",
    "countdown": "delay",
    "eta": "run_at",
    "expires": "max_age",
    "queue": "lane",
    "rate_limit": "limits",
    "retries": "max_retries",
    "time_limit": "timeout",
}
_ELSEWHERE: Final = {
    **{name: f"; {name} is an option of submit" for name in ("delay", "run_at")},
    **{
        name: f"; {name} is an option of @lw.handler"
        for name in ("limits", "max_age", "retry", "timeout")
    },
    "lane": "; a submit cannot choose the lane: lane is an option of @lw.handler",
}


def closest(given: str, known: Iterable[str]) -> str | None:
    """The known name that is most like the given one; None if none is like it."""
    return next(iter(get_close_matches(given, known, n=1)), None)


def suggest(given: str, known: Iterable[str]) -> str:
    """`; did you mean max_retries?`, or nothing if no known name is like the given one."""
    found = closest(given, known)
    return "" if found is None else f"; did you mean {found}?"


def other_word(given: str) -> str | None:
    """Our name of an option of other job queues."""
    return _OTHER_WORDS.get(given)


def suggest_option(given: str, known: Collection[str]) -> str:
    """`suggest` for options, which also knows the words of other job queues."""
    name = _OTHER_WORDS.get(given, given)
    if name in known:
        return f"; did you mean {name}?"
    return _ELSEWHERE.get(name) or suggest(given, known)
