"""The settings that a change of a lane, a limit or a schedule may name, checked by field."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from annotated_types import Interval

from laneway.domain.annotations import CheckedBy, find_mark, non_null, unwrap
from laneway.domain.suggestion import suggest
from laneway.domain.text import escape_text, shown
from laneway.errors import InvalidInput

Check = Callable[[str, object], object]

_SHOWN_CHARS = 63


def validate_settings(
    of: str,
    change: object,
    checks: Mapping[str, Check],
    fields: Collection[str],
    *,
    required: Collection[str],
) -> dict[str, object]:
    """The settings that a change names, each as its check returns it.

    A new object has `required` settings. Without them an existing object is changed, which keeps
    its `name`. `fields` without a check cannot be set from outside.
    """
    if not isinstance(change, Mapping):
        raise InvalidInput(of, "must be an object")
    checked: dict[str, object] = {}
    for field, value in change.items():
        if field == "name" and not required:
            raise InvalidInput("name", "cannot be changed")
        if field in checks:
            checked[field] = checks[field](field, value)
        elif field in fields:
            raise InvalidInput(field, "is set by Laneway and cannot be given")
        else:
            known = ", ".join(sorted(each for each in checks if each != "name"))
            name = escape_text(str(field)[:_SHOWN_CHARS])
            near = suggest(name, checks)
            raise InvalidInput(name, f"is not a setting of a {of}; use one of {known}{near}")
    for field in required:
        if field not in checked:
            raise InvalidInput(field, f"is required for a new {of}")
    return checked


def checks_of(settings: type) -> dict[str, Check]:
    """A check for each key of a TypedDict, made from the marks of its type."""
    hints = get_type_hints(settings, include_extras=True)
    return {name: check_of(hint) for name, hint in hints.items()}


def check_of(hint: Any) -> Check:
    """The check of one type."""
    kind, marks = unwrap(hint)
    if (inner := non_null(kind)) is not None:
        return optional(check_of(Annotated[(inner, *marks)] if marks else inner))
    if (own := find_mark(hint, CheckedBy)) is not None:
        return lambda field, value: own.check(value, field)
    if kind is bool:
        return check_flag
    if get_origin(kind) is Literal:
        return check_word(get_args(kind))
    bounds = find_mark(hint, Interval)
    if bounds is None:
        raise TypeError(f"{hint} names neither a range nor a check")
    return lambda field, value: check_whole(value, field, bounds.ge, bounds.le)


def check_flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(field, "must be true or false")
    return value


def check_word(words: tuple[str, ...]) -> Check:
    """A check for one of a few words."""

    def check(field: str, value: object) -> object:
        if not isinstance(value, str) or value not in words:
            raise InvalidInput(field, f"must be one of {', '.join(words)}")
        return value

    return check


def check_whole(value: object, field: str, low: int, high: int) -> int:
    """The whole number; InvalidInput if it is another value or out of range."""
    # bool is an int in Python: `true` would silently be one slot.
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidInput(
            field, f"must be a whole number from {low} to {high}, not {shown(value)}"
        )
    return value


def optional(check: Check) -> Check:
    """The check, or null."""
    return lambda field, value: None if value is None else check(field, value)
