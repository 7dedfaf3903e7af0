"""Finds the handler of a job type in a child process."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from laneway.engine.registry import Handler, Registry
from laneway.errors import ConfigError

# The name that multiprocessing uses, so that code under `if __name__ == "__main__"` does not run.
MAIN = "__mp_main__"


class HandlerFinder:
    """Imports the modules of the worker and looks for applications in them."""

    def __init__(self, app: str | None) -> None:
        self._app = app
        self._found: dict[str, tuple[Handler, Registry]] = {}
        # Made by the function that the reference names, once.
        self._made: object = None

    def find(
        self, job_type: str, module: str | None, main: dict[str, str | None]
    ) -> tuple[Handler, Registry]:
        """The handler of a job type and its registry; raises what an import raises."""
        found = self._found.get(job_type)
        if found is None:
            for registry in self._registries(module, main):
                handler = registry.get(job_type)
                if handler is not None:
                    found = self._found[job_type] = handler, registry
                    break
            else:
                raise ConfigError(
                    f"handler {job_type!r} cannot be found by a child process:"
                    " define it at module level"
                )
        return found

    def _registries(self, module: str | None, main: dict[str, str | None]) -> Iterator[Registry]:
        # Import first: the module may add the handler to the application.
        home = _module(module, main)
        if self._app is not None:
            yield from _of(self._application(self._app))
        if home is None:
            return
        for value in list(vars(home).values()):
            yield from _of(value)
        for value in list(vars(home).values()):
            if isinstance(value, ModuleType):
                for inner in list(vars(value).values()):
                    yield from _of(inner)

    def _application(self, app: str) -> object:
        if not app.endswith("()"):
            return _attribute(app)
        if self._made is None:
            factory = _attribute(app.removesuffix("()"))
            self._made = factory() if callable(factory) else None
        return self._made


def _of(value: object) -> Iterator[Registry]:
    try:
        registry = value if isinstance(value, Registry) else getattr(value, "registry", None)
    except Exception:  # any object of a module may raise here
        return
    if isinstance(registry, Registry):
        yield registry


def _attribute(app: str) -> object:
    name, _, path = app.partition(":")
    value: object = import_module(name)
    for part in (path or "lw").split("."):
        value = getattr(value, part, None)
    return value


def _module(name: str | None, main: dict[str, str | None]) -> ModuleType | None:
    if name is None:
        return None
    if name != "__main__":
        return import_module(name)
    if MAIN not in sys.modules:
        module = _import_main(main)
        if module is None:
            return None
        sys.modules[MAIN] = sys.modules["__main__"] = module
    return sys.modules[MAIN]


def _import_main(main: dict[str, str | None]) -> ModuleType | None:
    """Import the worker's main script under another name; None if it has no file."""
    name, path = main.get("name"), main.get("path")
    module = ModuleType(MAIN)
    if name is not None:
        module.__dict__.update(runpy.run_module(name, run_name=MAIN, alter_sys=True))
    elif path is not None:
        module.__dict__.update(runpy.run_path(path, run_name=MAIN))
    else:
        return None
    return module
