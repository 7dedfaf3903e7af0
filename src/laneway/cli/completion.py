"""Completions of a shell: lanes, job types, statuses and job ids.

A lookup is short and silent: without a reachable database or server there is nothing to complete.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, redirect_stderr, suppress
from typing import TYPE_CHECKING, TypeVar

import typer

if TYPE_CHECKING:
    from laneway.cli.connection import Backend

T = TypeVar("T")
Words = list[tuple[str, str]]
# People wait for the Tab key.
LONGEST_S = 2.0
NEWEST = 20


def statuses(incomplete: str) -> list[str]:
    from laneway.domain.states import LABELS, Status

    # The labels that tables show come first, other words for a status last.
    words = dict.fromkeys(("queued", "analysing", *Status, *LABELS))
    return [name for name in words if name.startswith(incomplete)]


def lanes(ctx: typer.Context, incomplete: str) -> list[str]:
    async def names(backend: Backend) -> list[str]:
        from laneway.operations.lanes import list_lanes

        return [each.lane.name for each in await backend.items(list_lanes())]

    return [name for name in _look_up(ctx, names) if name.startswith(incomplete)]


def job_types(ctx: typer.Context, incomplete: str) -> list[str]:
    async def names(backend: Backend) -> list[str]:
        from laneway.operations.job_types import list_job_types

        return [each.name for each in await backend.items(list_job_types())]

    return [name for name in _look_up(ctx, names) if name.startswith(incomplete)]


def job_ids(ctx: typer.Context, incomplete: str) -> Words:
    """The newest jobs, and those whose ids begin with the digits."""

    async def newest(backend: Backend) -> Words:
        from laneway.domain.filter import JobFilter
        from laneway.domain.job_id import IdPrefix, parse_id
        from laneway.errors import InvalidInput

        listed = await backend.list_jobs(JobFilter(), limit=NEWEST, cursor=None)
        found = {str(job.id): f"{job.job_type} {job.label}" for job in listed.items}
        with suppress(InvalidInput):
            if isinstance(given := parse_id(incomplete), IdPrefix):
                (near,) = await backend.find_ids([given.text])
                found = {str(job_id): "" for job_id in near.ids} | found
        return list(found.items())

    return [word for word in _look_up(ctx, newest) if word[0].startswith(incomplete.lower())]


def flow_ids(ctx: typer.Context, incomplete: str) -> Words:
    """The newest flows."""

    async def newest(backend: Backend) -> Words:
        from laneway.operations.flows import list_flows

        page = await backend.page(list_flows(), NEWEST, None)
        return [(str(flow.id), f"{flow.name} {flow.status.value}") for flow in page.items]

    return [word for word in _look_up(ctx, newest) if word[0].startswith(incomplete.lower())]


def _look_up(ctx: typer.Context, read: Callable[[Backend], Awaitable[list[T]]]) -> list[T]:
    """Read words; a failure yields none, and nothing is printed."""
    import asyncio
    import logging

    async def within_time() -> list[T]:
        async with asyncio.timeout(LONGEST_S), _backend(ctx) as backend:
            return await read(backend)

    logging.disable(logging.CRITICAL)
    try:
        with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
            return asyncio.run(within_time())
    except (Exception, SystemExit):
        return []
    finally:
        logging.disable(logging.NOTSET)


@asynccontextmanager
async def _backend(ctx: typer.Context) -> AsyncIterator[Backend]:
    """The backend of the command to complete; embedded PostgreSQL only if it runs already."""
    from laneway.cli import connection

    # The root callback does not run for a completion.
    given = ctx.find_root().params
    if given.get("server"):
        connection.use_server(
            connection.Server(
                given["server"], given.get("token"), bool(given.get("allow_insecure"))
            )
        )
        async with connection.backend() as backend:
            yield backend
        return
    from laneway.app.open_database import running_dsn
    from laneway.cli.backends.database import DatabaseBackend
    from laneway.store.database import Database

    if url := given.get("database_url"):
        os.environ["LANEWAY_DATABASE_URL"] = url
    settings = connection.settings()
    database = Database(running_dsn(settings), settings, role="cli")
    try:
        yield DatabaseBackend(database, connection.principal())
    finally:
        await database.close()
