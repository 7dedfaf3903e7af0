"""A minimal FastAPI route that stores a job: no authentication, one plain INSERT per request.

It logs each request, as uvicorn does by default and as Laneway does.

python -m bench.api.bare, with the database in DATABASE_URL; prints its address.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from types import SimpleNamespace
from typing import Any

import psycopg
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from laneway.api.http.server import Serving, listen, url_of
from laneway.app.laneway import SERVER_POOL
from laneway.config.settings import Settings
from laneway.engine.process.lifecycle import run_loop

CREATE = (
    "create table if not exists public.bare_jobs (id bigint generated always as identity"
    " primary key, job_type text not null, payload jsonb not null,"
    " created_at timestamptz not null default now())"
)
INSERT = "insert into public.bare_jobs (job_type, payload) values (%s, %s::jsonb) returning id"

Pool = asyncio.Queue[psycopg.AsyncConnection[tuple[Any, ...]]]


class NewJob(BaseModel):
    """The body of a request."""

    job_type: str
    payload: Any = None


app = FastAPI(openapi_url=None)
log = logging.getLogger("bare")


@app.post("/jobs")
async def insert(request: Request, job: NewJob) -> JSONResponse:
    """Store the job."""
    pool: Pool = request.app.state.pool
    conn = await pool.get()
    try:
        cursor = await conn.execute(INSERT, [job.job_type, json.dumps(job.payload)])
        row = await cursor.fetchone()
    finally:
        pool.put_nowait(conn)
    assert row is not None
    client = f"{request.client.host}:{request.client.port}" if request.client else ""
    log.info('%s "%s %s" %d', client, request.method, request.url.path, 202)
    return JSONResponse({"id": row[0]}, 202)


async def _serve() -> int:
    pool: Pool = asyncio.Queue()
    for _ in range(SERVER_POOL):
        conn = await psycopg.AsyncConnection.connect(
            os.environ["DATABASE_URL"], autocommit=True, prepare_threshold=0
        )
        pool.put_nowait(conn)
    await conn.execute(CREATE)

    async def close() -> None:
        while not pool.empty():
            await pool.get_nowait().close()

    app.state.settings = Settings.load()
    app.state.pool = pool
    app.state.close = close
    app.state.hub = SimpleNamespace(end_streams=lambda: None)
    # Laneway uses the same server program.
    with listen("127.0.0.1", 0) as bound:
        serving = Serving(app, bound, 1.0)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, serving.on_signal)
        print(f"serving {url_of(bound)}", flush=True)
        await serving.run()
    return 0


if __name__ == "__main__":
    logging.basicConfig(
        format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr
    )
    run_loop(_serve())
