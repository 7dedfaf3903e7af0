"""Laneway mounted below a path of another application: python -m tests.e2e.mounted PORT."""

from __future__ import annotations

import sys
from socket import socket

import uvicorn
from fastapi import FastAPI

from laneway.integrations.fastapi import lifespan
from tests.e2e.app import lw

app = FastAPI(lifespan=lifespan(lw))
app.mount("/laneway", lw.asgi())


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        print(f"serving http://127.0.0.1:{port}/laneway", flush=True)


if __name__ == "__main__":
    _Server(uvicorn.Config(app, port=int(sys.argv[1]), log_level="warning")).run()
