"""Liveness and readiness checks for load balancers, without a token."""

from __future__ import annotations

import asyncio
import time
from typing import Final, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from laneway import __version__
from laneway.api.http.problems import problem_responses
from laneway.store.database import Database
from laneway.store.migrate import check
from laneway.streams.hub import Hub

router = APIRouter(tags=["health"])

# How long a result is reused: each check opens a connection.
FRESH_S: Final = 1.0


class HealthOut(BaseModel):
    """The process responds."""

    status: Literal["ok"] = "ok"


class ReadinessOut(BaseModel):
    """The server is ready; otherwise the code of a problem says what is missing."""

    status: Literal["ok"] = "ok"
    database: Literal["reached"] = "reached"
    # Pydantic models reserve the name `schema`.
    schema_: Literal["current"] = Field(default="current", serialization_alias="schema")
    listener: Literal["listening", "polling", "off"] = Field(
        description="How streams learn of changes by other processes; off: no stream is open"
    )


class ReadinessCheck:
    """Checks the database at most once a second."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._checking = asyncio.Lock()
        self._until = 0.0
        self._error: Exception | None = None

    async def check(self) -> None:
        """Raise unless the database is reachable and has the right schema."""
        async with self._checking:
            if time.monotonic() >= self._until:
                self._error = await self._run()
                self._until = time.monotonic() + FRESH_S
        if self._error is not None:
            raise self._error

    async def _run(self) -> Exception | None:
        try:
            await asyncio.to_thread(lambda: check(self._database.dsn, __version__))
        except Exception as error:
            return error
        return None


@router.get("/healthz", operation_id="get_health", response_model=HealthOut)
async def healthz() -> HealthOut:
    """Report that the process responds."""
    return HealthOut()


@router.get(
    "/readyz",
    operation_id="get_readiness",
    response_model=ReadinessOut,
    responses=problem_responses(503),
)
async def readyz(request: Request) -> ReadinessOut:
    """Report whether the database is reachable and has the schema that this version needs."""
    readiness: ReadinessCheck = request.app.state.readiness
    await readiness.check()
    return ReadinessOut(listener=listener_of(request.app.state.hub))


def listener_of(hub: Hub) -> Literal["listening", "polling", "off"]:
    """The way in which this replica's streams learn of changes by other processes."""
    if hub.is_listening:
        return "listening"
    return "polling" if hub.open_streams else "off"
