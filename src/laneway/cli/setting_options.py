"""Options made from the settings of an object: one for each key of its TypedDict."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from annotated_types import Interval

from laneway.cli import inputs
from laneway.domain.annotations import Doc, NullWord, find_mark, non_null, unwrap


def takes_settings(
    settings: type, *, without: tuple[str, ...] = (), names: Mapping[str, str] = {}
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each setting; those given are its argument `settings`.

    `names`: options that are named otherwise than their setting.
    """
    hints = get_type_hints(settings, include_extras=True)
    options = {name: hint for name, hint in hints.items() if name not in without}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**given: Any) -> None:
            values = {name: given.pop(name) for name in options}
            chosen = {name: value for name, value in values.items() if value is not None}
            command(settings={n: _value(options[n], v) for n, v in chosen.items()}, **given)

        own = inspect.signature(command, eval_str=True).parameters
        taken = {name: each for name, each in own.items() if name != "settings"}
        made = {
            name: _parameter(name, names.get(name, name), hint) for name, hint in options.items()
        }
        first = [each for each in taken.values() if each.default is inspect.Parameter.empty]
        rest = [each for each in taken.values() if each not in first]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature([*first, *made.values(), *rest])  # type: ignore[attr-defined]
        run.__annotations__ = {}
        return run

    return decorate


def _parameter(name: str, option: str, hint: Any) -> inspect.Parameter:
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
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        annotation=Annotated[shown | None, typer.Option(flag, help=help_of(hint), **more)],
        default=None,
    )


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
