"""Imports the application that a command names."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from laneway.app.laneway import Laneway
from laneway.errors import ConfigError


def load_app(reference: str) -> Laneway:
    """Imports the application that `module:name` names."""
    module_name, _, name = reference.partition(":")
    if os.getcwd() not in sys.path:
        # Console scripts do not import from the current directory; `python -m` does.
        sys.path.insert(0, os.getcwd())
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise
        raise ConfigError(f"app {reference!r}: module {module_name!r} was not found") from error
    app = getattr(module, name or "lw", None)
    if not isinstance(app, Laneway):
        raise ConfigError(f"{module_name}:{name or 'lw'} is not a Laneway instance")
    return app
