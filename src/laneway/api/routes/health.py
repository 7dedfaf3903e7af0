"""Whether this process lives, and whether it can serve: for load balancers, without a token."""

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

# Whoever asks more often gets the last answer: it costs a connection.
FRESH_S: Final = 1.0


class HealthOut(BaseModel):
    """All is well."""

    status: Literal["ok"] = "ok"


class ReadinessOut(BaseModel):
    """All that requests need is there; what is missing is told by the code of a problem instead."""

    status: Literal["ok"] = "ok"
    database: Literal["reached"] = "reached"
    # `schema` is taken in every model.
    schema_: Literal["current"] = Field(default="current", serialization_alias="schema")
    listener: Literal["listening", "polling", "off"] = Field(
        description="How streams hear of changes made elsewhere; off: nobody has one open"
    )


class ReadinessCheck:
    """Looks at the database, at most once a second however many ask."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._looking = asyncio.Lock()
        self._until = 0.0
        self._trouble: Exception | None = None

    async def check(self) -> None:
        """Returns when the database is there with the right schema."""
        async with self._looking:
            if time.monotonic() >= self._until:
                self._trouble = await self._look()
                self._until = time.monotonic() + FRESH_S
        if self._trouble is not None:
            raise self._trouble

    async def _look(self) -> Exception | None:
        try:
            await asyncio.to_thread(lambda: check(self._database.dsn, __version__))
        except Exception as error:
            return error
        return None


@router.get("/healthz", operation_id="get_health", response_model=HealthOut)
async def healthz() -> HealthOut:
    """The process answers."""
    return HealthOut()


@router.get(
    "/readyz",
    operation_id="get_readiness",
    response_model=ReadinessOut,
    responses=problem_responses(503),
)
async def readyz(request: Request) -> ReadinessOut:
    """The database is reached, and its schema is the one this version needs."""
    readiness: ReadinessCheck = request.app.state.readiness
    await readiness.check()
    return ReadinessOut(listener=listener_of(request.app.state.hub))


def listener_of(hub: Hub) -> Literal["listening", "polling", "off"]:
    """How the streams of this replica hear of changes made elsewhere."""
    if hub.is_listening:
        return "listening"
    return "polling" if hub.open_streams else "off"
