"""Options made from the settings of an object: one for each key of its TypedDict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from annotated_types import Interval

from laneway.cli import inputs
from laneway.cli.option_groups import Command, takes
from laneway.domain.annotations import Doc, NullWord, find_mark, non_null, unwrap


def takes_settings(
    settings: type, *, without: tuple[str, ...] = (), names: Mapping[str, str] = {}
) -> Callable[[Command], Command]:
    """Give a command an option for each setting; those given are its argument `settings`.

    `names`: options that are named otherwise than their setting.
    """
    hints = get_type_hints(settings, include_extras=True)
    hints = {name: hint for name, hint in hints.items() if name not in without}

    def gather(given: dict[str, Any]) -> dict[str, object]:
        return {name: _value(hints[name], one) for name, one in given.items() if one is not None}

    options = {name: _option(names.get(name, name), hint) for name, hint in hints.items()}
    return takes("settings", options, gather)


def _option(option: str, hint: Any) -> Any:
    kind, _ = unwrap(hint)
    word = find_mark(hint, NullWord)
    more: dict[str, Any] = {"metavar": "N"}
    shown: Any = int
    if get_origin(kind) is list:
        shown, more = str, {"metavar": "A,B"}
    elif get_origin(kind) is Literal or _is_text(kind):
        shown, more = str, {"metavar": option.upper()}
    elif word is not None:
        is_signed = find_mark(hint, Interval).ge < 0
        shown, more = str, {"metavar": "N", "parser": inputs.whole_or(word.word, is_signed)}
    flag = f"--{option.replace('_', '-')}"
    return Annotated[shown | None, typer.Option(flag, help=help_of(hint), **more)]


def _is_text(kind: Any) -> bool:
    return str in (kind, non_null(kind))


def help_of(hint: Any) -> str:
    """The help of an option, with the range that the domain checks."""
    parts = [find_mark(hint, Doc).text]
    bounds, word = find_mark(hint, Interval), find_mark(hint, NullWord)
    meaning = f": {word.means}" if word is not None and word.means else ""
    if bounds is not None:
        last = f" or `{word.word}`{meaning}" if word is not None else ""
        parts.append(f"{bounds.ge} to {bounds.le}{last}")
    elif word is not None:
        parts.append(f"or `{word.word}`{meaning}")
    kind, _ = unwrap(hint)
    if get_origin(kind) is list:
        parts.append("separated by commas")
    if get_origin(kind) is Literal:
        parts.append(f"one of {', '.join(get_args(kind))}")
    return "; ".join(parts) + "."


def _value(hint: Any, given: Any) -> object:
    word = find_mark(hint, NullWord)
    if word is not None:
        if given == word.word:
            return None
        return given if _is_text(unwrap(hint)[0]) else int(given)
    return inputs.names(given) if get_origin(unwrap(hint)[0]) is list else given
