"""The place in the user's code that a refused declaration names."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from laneway.domain.suggestion import suggest_option
from laneway.domain.type_hint import function_of
from laneway.errors import ConfigError, InvalidInput

M = TypeVar("M", bound=Callable[..., Any])


def place_of(fn: object) -> str:
    """`jobs/app.py:12, in ingest`: where a function is defined, or where it is declared."""
    code = function_of(fn)
    name = name_of(code)
    code = getattr(code, "__code__", None)
    if not inspect.iscode(code):
        return f"{place_of_caller()}, in {name}"
    return f"{_shown(code.co_filename)}:{code.co_firstlineno}, in {name}"


def name_of(fn: object) -> str:
    """The name of a function; that of its class for another object."""
    return str(getattr(fn, "__name__", type(fn).__name__))


def place_of_caller() -> str:
    """`jobs/app.py:12`: the line outside of Laneway that is running."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__")):
        frame = frame.f_back
    return f"{_shown(frame.f_code.co_filename)}:{frame.f_lineno}"


def without_parentheses(decorator: str, fn: object, written: str) -> ConfigError:
    """The error about a decorator that needs arguments and got the function instead."""
    return ConfigError(f"{place_of(fn)}: {decorator} needs parentheses: write {written}")


def needs_argument(message: str) -> Callable[[M], M]:
    """Refuse a decorator that is called without its first argument, with the place and the cure.

    A default value would hide the mistake from type checkers. `{0}` in the message is the object.
    """

    def decorate(method: M) -> M:
        first = method.__code__.co_varnames[1]

        @wraps(method)
        def checked(self: object, *given: Any, **options: Any) -> Any:
            if not given and first not in options:
                raise ConfigError(f"{place_of_caller()}: {message.format(self)}")
            return method(self, *given, **options)

        return cast("M", checked)

    return decorate


def needs_function(decorator: str) -> Callable[[M], M]:
    """Refuse a decorator with parentheses that takes none."""
    return needs_argument(f"{decorator} takes no parentheses: write {decorator}")


def check_names(given: Iterable[str], known: Iterable[str], of: str) -> None:
    """Refuse a name that is not an option; the error names the nearest one."""
    options = sorted(known)
    for name in given:
        if name not in options:
            near = suggest_option(name, options) or f"; use one of {', '.join(options)}"
            raise InvalidInput(name, f"is not an option of {of}{near}")


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == "laneway"


def _shown(path: str) -> str:
    """The path from the current directory, if it is below it."""
    try:
        return str(Path(path).relative_to(os.getcwd()))
    except (ValueError, OSError):
        return path
