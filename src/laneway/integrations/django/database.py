"""Django's database as a DSN for Laneway, and Django's connections in workers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.db import close_old_connections, connections

from laneway import Context, SyncContext


def dsn_of(alias: str) -> str:
    """The DSN of a database of the settings; during tests, that of its test database."""
    connection = connections[alias]
    if connection.vendor != "postgresql":
        raise ImproperlyConfigured(
            f"Laneway needs PostgreSQL, but DATABASES[{alias!r}] is {connection.vendor}: set"
            ' "DATABASE_URL" in the OPTIONS of the backend'
        )
    # Others, such as the cursor class, are objects of the driver.
    params = connection.get_connection_params().items()
    given = {name: value for name, value in params if type(value) in (str, int)}
    del given["client_encoding"]
    given.pop("prepare_threshold", None)
    if role := connection.settings_dict["OPTIONS"].get("assume_role"):
        # Django changes to it after it has connected.
        escaped = str(role).replace("\\", "\\\\").replace(" ", "\\ ")
        given["options"] = f"{given.get('options', '')} -c role={escaped}".strip()
    return " ".join(f"{name}={_quoted(str(value))}" for name, value in given.items())


def fresh_connections(ctx: SyncContext, call_next: Callable[[], Any]) -> Any:
    """Middleware for plain handlers: close broken and old connections, as Django does per request.

    A thread of the worker may wait long for its next job, and keeps its connection.
    """
    close_old_connections()
    try:
        return call_next()
    finally:
        close_old_connections()


async def fresh_connections_async(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
    """Middleware for async handlers, whose queries Django runs in a thread."""
    await sync_to_async(close_old_connections)()
    try:
        return await call_next()
    finally:
        await sync_to_async(close_old_connections)()


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
