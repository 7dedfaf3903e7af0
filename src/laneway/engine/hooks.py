"""Calls the on_start and on_stop hooks of an application."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any


async def call_hooks(hooks: Iterable[Callable[..., Any]], resources: SimpleNamespace) -> None:
    """Call plain and async hooks in order."""
    for hook in hooks:
        done = hook(resources)
        if inspect.isawaitable(done):
            await done
