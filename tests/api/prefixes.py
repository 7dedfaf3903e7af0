"""The ways to serve the API below a prefix."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

WAYS = ("root", "mounted", "root_path", "proxied")


class Unannounced:
    """A proxy that strips its prefix and reports it to no one."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix(self._prefix)
        raw = scope["raw_path"].removeprefix(self._prefix.encode())
        await self._app({**scope, "path": path, "raw_path": raw}, receive, send)


class RootPath:
    """A server with `root_path`: the path it passes on has the prefix."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "root_path": self._prefix}, receive, send)


def served_under(app: FastAPI, how: str) -> tuple[ASGIApp, str]:
    """The application that is asked, and the prefix of its addresses."""
    prefix = "/tools/ui"
    ways: dict[str, tuple[ASGIApp, str]] = {
        "root": (app, ""),
        "mounted": (Starlette(routes=[Mount(prefix, app)]), prefix),
        "root_path": (RootPath(app, prefix), prefix),
        "proxied": (Unannounced(app, prefix), prefix),
    }
    return ways[how]
