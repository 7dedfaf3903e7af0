"""The type hints of a function, one at a time: others may be there for type checkers only."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Mapping
from functools import partial
from typing import Any


def function_of(fn: object) -> Any:
    """The function that a partial, a wrapper, a bound method or a callable object calls."""
    code: Any = fn
    while isinstance(code, partial):
        code = code.func
    if not callable(code):
        return code
    code = inspect.unwrap(code)
    if not inspect.isroutine(code) and not isinstance(code, type):
        code = inspect.unwrap(type(code).__call__)
    return getattr(code, "__func__", code)


def resolve_hint(fn: object, hint: Any, localns: Mapping[str, object] | None = None) -> Any:
    """The type that a hint of this function names; raises what evaluating it raises.

    `localns` has the names of classes local to a function.
    """
    holder = types.SimpleNamespace(__annotations__={"hint": hint})
    return typing.get_type_hints(
        holder,
        globalns=getattr(function_of(fn), "__globals__", {}),
        localns=dict(localns or {}),
        include_extras=True,
    )["hint"]
