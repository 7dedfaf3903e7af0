"""Uniqueness of jobs: for a period, and by the values of some arguments."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from laneway.domain.duration import YEAR_S, seconds_of
from laneway.domain.text import check_text
from laneway.errors import InvalidInput

# As in laneway.unique_problem.
MAX_NAMES: Final = 64
_NAME_BYTES: Final = 128


def check_unique_for(period: object, field: str = "unique_for") -> float:
    """The seconds of a period, 0 to a year; 0: not unique by arguments."""
    seconds = seconds_of(period, field)
    if not 0 <= seconds <= YEAR_S:
        raise InvalidInput(field, "must be from 0 seconds to a year")
    return seconds


def check_unique_by(
    names: object, field: str = "unique_by", known: Collection[str] | None = None
) -> tuple[str, ...]:
    """The names of the arguments that form a unique key, each once; all must be `known`."""
    if not isinstance(names, (list, tuple, set, frozenset)):
        raise InvalidInput(field, "must be a list of names of arguments")
    if not 1 <= len(names) <= MAX_NAMES:
        raise InvalidInput(field, f"must have 1 to {MAX_NAMES} names")
    checked = {check_text(name, field, max_bytes=_NAME_BYTES) for name in names}
    if known is not None and (unknown := checked.difference(known)):
        listed = ", ".join(sorted(known)) or "none"
        raise InvalidInput(field, f"{min(unknown)!r} is not an argument; arguments are {listed}")
    return tuple(sorted(checked))
