"""Imports the application that a command names; an error names the line of the user's file."""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine, Iterator, Set
from importlib import import_module
from inspect import signature
from pathlib import Path, PurePath
from traceback import extract_tb
from types import FunctionType, ModuleType
from typing import Final

from laneway.app.laneway import Laneway
from laneway.domain.suggestion import suggest
from laneway.engine.run.exception_text import summary_of
from laneway.engine.run.user_frames import is_own
from laneway.errors import ConfigError, InvalidInput, LanewayError

DEFAULT_NAME: Final = "lw"
CALL: Final = "()"


def load_app(reference: str) -> Laneway:
    """Import the application that `module:name` names; without a name, the `lw` of the module.

    `module:name()` calls a function without arguments that returns it.
    """
    module_name, _, name = reference.partition(":")
    _check(reference, module_name, name)
    if os.getcwd() not in sys.path:
        # Console scripts do not import from the current directory; `python -m` does.
        sys.path.insert(0, os.getcwd())
    before = set(sys.modules)
    module = _import(reference, module_name)
    if name.endswith(CALL):
        app = _call(reference, module, name.removesuffix(CALL))
    else:
        app = _find(module, name or DEFAULT_NAME)
    if not len(app.handlers):
        shown = f"{module_name}:{name or DEFAULT_NAME}"
        app.handlers.why_empty = _why_empty(app, shown, sys.modules.keys() - before)
    return app


def _why_empty(app: Laneway, shown: str, imported: Set[str]) -> str:
    """The likely reason why an application has no handlers, and the cure."""
    found = _instances(imported)
    others = [place for place, other in found if other is not app and len(other.handlers)]
    if others:
        return (
            f"{shown} has no handlers, but {min(others)} has: start that one, or use the same"
            " Laneway in all modules"
        )
    module_name, _, name = shown.partition(":")
    return (
        f"{shown} has no handlers: decorate functions with @{name}.handler, and import the modules"
        f" that do so in {module_name}"
    )


def _check(reference: str, module_name: str, name: str) -> None:
    """Refuse references that are files, calls or no module names."""
    rule = None
    path = PurePath(module_name)
    shown = name or DEFAULT_NAME
    if "/" in module_name or "\\" in module_name or path.suffix == ".py":
        parts = [*path.parts[:-1], path.name.removesuffix(".py")]
        if path.is_absolute() or ".." in parts:
            to = f"change to {path.parent} and write {parts[-1]}:{shown}"
        else:
            to = f"write {'.'.join(parts)}:{shown}"
        rule = f"names a file, but a module is needed: {to}"
    elif name.startswith("("):
        rule = (
            f"names no function: write '{module_name}:NAME()', where NAME is a function without"
            " arguments"
        )
    elif "(" in name.removesuffix(CALL):
        function = name.partition("(")[0]
        rule = (
            f"passes arguments, which a reference cannot: write '{module_name}:{function}()' for a"
            " function without arguments"
        )
    elif not all(part.isidentifier() for part in module_name.split(".")):
        rule = "must be MODULE:NAME, such as app:lw"
    if rule is not None:
        raise ConfigError(f"app {reference!r} {rule}")


def _import(reference: str, module_name: str) -> ModuleType:
    try:
        return import_module(module_name)
    except LanewayError as error:
        places = _places(error, module_name)
        names_place = not places or PurePath(places[-1].rpartition(",")[0]).name in str(error)
        if names_place or not isinstance(error, (ConfigError, InvalidInput)):
            raise
        raise ConfigError(_broken(reference, module_name, error)) from error
    except ModuleNotFoundError as error:
        is_missing = error.name is not None and f"{module_name}.".startswith(f"{error.name}.")
        if is_missing and not _places(error, module_name):
            raise ConfigError(_not_found(reference, module_name)) from error
        raise ConfigError(_broken(reference, module_name, error)) from error
    except Exception as error:
        raise ConfigError(_broken(reference, module_name, error)) from error


def _not_found(reference: str, module_name: str) -> str:
    *parents, last = module_name.split(".")
    near = suggest(last, _modules_in(Path.cwd().joinpath(*parents)))
    parent = ".".join(parents)
    if hasattr(sys.modules.get(parent), last):
        near = f"; did you mean {parent}:{last}?"
    cure = near or f": start the command in the folder that contains {module_name.split('.')[0]}"
    return f"app {reference!r}: no module {module_name} in {Path.cwd()} or on sys.path{cure}"


def _modules_in(folder: Path) -> list[str]:
    found = {one.stem for one in folder.iterdir()} if folder.is_dir() else set()
    return sorted(name for name in found if name.isidentifier())


def _broken(reference: str, module_name: str, error: Exception) -> str:
    """The error at import, with its place and that of the imports that led to it."""
    places = _places(error, module_name)
    # Messages of Laneway say what to change; the name of their class adds nothing.
    summary = str(error) if isinstance(error, LanewayError) else summary_of(error)
    if isinstance(error, SyntaxError) and error.filename is not None:
        summary = f"{type(error).__name__}: {error.msg}"
        places.append(_place(error.filename, error.lineno))
    elif isinstance(error, ModuleNotFoundError) and "." not in (error.name or "."):
        near = suggest(error.name or "", _modules_in(Path.cwd()))
        summary += near or "; is it installed in this environment?"
    failed = f"app {reference!r} cannot be imported: "
    if not places:
        return failed + summary
    *outer, inner = places
    via = ", imported by ".join(("", *reversed(outer)))[2:]
    return f"{failed}{inner}: {summary}{f' ({via})' if via else ''}"


def _places(error: Exception, module_name: str) -> list[str]:
    """The lines of the user's files that were being run, outermost first."""
    return [
        _place(frame.filename, frame.lineno)
        for frame in extract_tb(error.__traceback__)
        if is_own(frame.filename, module_name)
    ]


def _place(path: str, line: int | None) -> str:
    inside = PurePath(path).is_relative_to(Path.cwd())
    return f"{PurePath(path).relative_to(Path.cwd()) if inside else path}, line {line}"


def _call(reference: str, module: ModuleType, name: str) -> Laneway:
    """Call the function that makes the application."""
    factory = _value(module, name)
    if not callable(factory):
        found = f"{module.__name__} has no function named {name}"
        if factory is not None:
            found = f"{module.__name__}.{name} is a {type(factory).__name__}, not a function"
        raise ConfigError(f"app {reference!r}: {found}")
    try:
        signature(factory).bind()
    except TypeError as error:
        raise ConfigError(
            f"app {reference!r}: {name} cannot be called without arguments: {error}"
        ) from None
    except ValueError:  # a built-in without a signature
        pass
    try:
        made = factory()
    except Exception as error:
        text = _broken(reference, module.__name__, error)
        raise ConfigError(text.replace("cannot be imported", "cannot be made", 1)) from error
    if isinstance(made, Laneway):
        return made
    if isinstance(made, Coroutine):
        made.close()
    kind = type(made).__name__
    raise ConfigError(f"app {reference!r}: {name} must return a Laneway instance, not {kind}")


def _value(module: ModuleType, name: str) -> object:
    value: object = module
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _find(module: ModuleType, name: str) -> Laneway:
    value = _value(module, name)
    if isinstance(value, Laneway):
        return value
    found = sorted(key for key, one in vars(module).items() if issubclass(type(one), Laneway))
    names = f"found: {', '.join(found)}" if found else "it defines none"
    shown = module.__name__
    if value is None:
        raise ConfigError(f"{shown} has no Laneway named {name} ({names})")
    if isinstance(value, FunctionType):
        raise ConfigError(
            f"{shown}:{name} is a function, not a Laneway instance ({names}): write"
            f" '{shown}:{name}()' if it returns one"
        )
    kind = type(value).__name__
    raise ConfigError(f"{shown}:{name} is not a Laneway instance but of type {kind} ({names})")


def _instances(modules: Set[str]) -> Iterator[tuple[str, Laneway]]:
    """All applications in these modules, by `module:name`."""
    for module_name in modules:
        for name, value in list(getattr(sys.modules[module_name], "__dict__", {}).items()):
            # Not isinstance: a proxy may raise if it is asked for its class.
            if issubclass(type(value), Laneway):
                yield f"{module_name}:{name}", value
