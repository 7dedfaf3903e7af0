"""Reads name, message and traceback of an exception that user code raised.

User code may define all of these. Whatever that code does (raise SystemExit, return a gigabyte,
chain a million causes), these functions return a bounded text and never raise.
"""

from __future__ import annotations

import traceback
from typing import Final

# Longer chains and larger groups are cut: formatting them would take minutes.
MAX_RELATED: Final = 100
# The bound on each text; stored texts are shorter still.
MAX_CHARACTERS: Final = 100_000
_NAME: Final = type.__dict__["__name__"]


def name_of(error: BaseException) -> str:
    """The name of its class as defined, even if a metaclass overrides `__name__`."""
    return str(_NAME.__get__(type(error)))


def message_of(error: BaseException) -> str:
    """The text of the exception, cut; the name of its class if that is empty."""
    try:
        # A subclass of str may override slicing.
        text = str.__getitem__(str(error), slice(MAX_CHARACTERS))
        return text or name_of(error)
    except BaseException as broken:
        return f"its text could not be read: {name_of(broken)}"


def traceback_of(error: BaseException) -> str | None:
    """The formatted traceback, with causes and grouped exceptions if they are few."""
    try:
        if not _has_few_related(error):
            frames = "".join(traceback.format_tb(error.__traceback__))
            return f"{frames}{name_of(error)}: {message_of(error)}\n  … with many causes or parts\n"
        return "".join(traceback.format_exception(error))
    except BaseException:
        return None


def summary_of(error: BaseException) -> str:
    """Name and shortened message, for a log line."""
    return f"{name_of(error)}: {message_of(error)[:200]}"


def _has_few_related(error: BaseException) -> bool:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        parts = one.exceptions if issubclass(type(one), BaseExceptionGroup) else ()  # type: ignore[attr-defined]
        if len(seen) + len(parts) > MAX_RELATED:
            return False
        waiting += [one.__cause__, one.__context__, *parts]
    return True
