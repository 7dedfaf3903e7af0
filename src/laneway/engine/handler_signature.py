"""The rules for a handler's function: a context first, and a result that it returns."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from inspect import Parameter
from typing import Annotated, Any, Final, TypeVar, Union, cast, get_args, get_origin

from laneway.domain.retry import RetryFunction
from laneway.domain.type_hint import resolve_hint
from laneway.engine.async_callable import hides_async, is_async
from laneway.engine.code_place import name_of
from laneway.errors import InvalidInput

# A class of one of these names is a context: users may have a stand-in for tests.
_CONTEXTS: Final = frozenset({"Context", "SyncContext"})
_CONTEXT_MODULE: Final = "laneway.engine.run.context"
_WITHOUT_HINT: Final = ("ctx", "context")
_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def check_handler(fn: object) -> None:
    """Refuse what can never run as a handler; InvalidInput names the parameter and the cure."""
    if inspect.isclass(fn):
        raise InvalidInput(name_of(fn), "is a class: a handler is a function")
    if not callable(fn):
        raise InvalidInput(name_of(fn), "cannot be called: a handler is a function")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise InvalidInput(
            name_of(fn), "yields: a handler returns its result; report progress with ctx.progress"
        )
    first = next(iter(inspect.signature(fn).parameters.values()), None)
    if first is None or first.kind not in _POSITIONAL:
        raise InvalidInput("ctx", f"the first parameter, the context, is missing: {_cure(fn)}")
    if first.annotation is Parameter.empty:
        if first.name in ("self", "cls"):
            raise InvalidInput(
                first.name, "is not passed to a handler: register a function, or a bound method"
            )
        is_context = first.name.startswith("_") or any(w in first.name for w in _WITHOUT_HINT)
    else:
        hint = _resolved(fn, first)
        _check_kind(fn, first.name, hint)
        is_context = _is_context(hint)
    if not is_context:
        raise InvalidInput(
            first.name, f"is not a context, which is the first parameter: {_cure(fn)}"
        )


def _check_kind(fn: Callable[..., Any], name: str, hint: Any) -> None:
    """Refuse the context of the other kind of function; a subclass may be a stand-in for both."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    # A wrapper has the hints of what it wraps.
    if getattr(hint, "__module__", None) != _CONTEXT_MODULE or hides_async(fn):
        return
    if hint.__name__ == ("SyncContext" if is_async(fn) else "Context"):
        kind = "an async def" if is_async(fn) else "a plain def"
        raise InvalidInput(name, f"is a {hint.__name__}, but {kind} gets the other: {_cure(fn)}")


def _is_context(hint: Any) -> bool:
    if hint is Any or hint is object or isinstance(hint, TypeVar):
        return True
    if isinstance(hint, (str, typing.ForwardRef)):
        # A name that only type checkers can resolve cannot be the type of an argument.
        return True
    if get_origin(hint) in (Union, types.UnionType):
        return any(map(_is_context, get_args(hint)))
    if get_origin(hint) is Annotated:
        return _is_context(get_args(hint)[0])
    kind = get_origin(hint) or hint
    if getattr(kind, "_is_protocol", False):
        return kind.__module__ not in ("typing", "collections.abc")
    return any(base.__name__ in _CONTEXTS for base in getattr(kind, "__mro__", ()))


def _resolved(fn: Callable[..., Any], parameter: Parameter) -> Any:
    try:
        return resolve_hint(fn, parameter.annotation)
    except Exception:
        return parameter.annotation


def _cure(fn: Callable[..., Any]) -> str:
    """The signature to write."""
    is_coroutine = is_async(fn)
    context = f"ctx: {'Context' if is_coroutine else 'SyncContext'}"
    if name_of(fn) == "<lambda>" or not inspect.isfunction(fn):
        return f"write {context}"
    rest = list(inspect.signature(fn).parameters.values())
    if rest and any(word in rest[0].name for word in _WITHOUT_HINT):
        del rest[0]
    shown = [context]
    for each in rest:
        if each.kind is Parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        shown.append(_shown(each))
    return f"write {'async ' if is_coroutine else ''}def {name_of(fn)}({', '.join(shown)})"


def _shown(parameter: Parameter) -> str:
    name, hint = parameter.name, parameter.annotation
    if parameter.kind is Parameter.VAR_POSITIONAL:
        name = f"*{name}"
    elif parameter.kind is Parameter.VAR_KEYWORD:
        name = f"**{name}"
    if hint is Parameter.empty:
        return name
    return f"{name}: {hint if isinstance(hint, str) else inspect.formatannotation(hint)}"


def check_retry_function(given: object) -> RetryFunction | None:
    """A retry function that takes the number of the retry and the error, or None."""
    if given is not None and (not callable(given) or is_async(given) or hides_async(given)):
        raise InvalidInput("retry", "must be a RetryPolicy or a plain function (n, error)")
    if given is not None:
        try:
            inspect.signature(given).bind(1, None)
        except TypeError:
            raise InvalidInput(
                "retry",
                "must take the number of the retry and the error: write def retry(n, error)",
            ) from None
        except ValueError:
            pass  # a builtin has no signature
    return cast("RetryFunction | None", given)
