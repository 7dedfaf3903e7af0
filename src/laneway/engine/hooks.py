"""What an application loads when a process begins to run its handlers, and frees at the end."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any


async def call_hooks(hooks: Iterable[Callable[..., Any]], resources: SimpleNamespace) -> None:
    """Calls one after the other; plain functions and async ones."""
    for hook in hooks:
        done = hook(resources)
        if inspect.isawaitable(done):
            await done
