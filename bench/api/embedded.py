"""An application with an embedded worker, and jobs that keep a processor busy.

python -m bench.api.embedded, with the database in DATABASE_URL; prints its address.
"""

from __future__ import annotations

import time

import uvicorn
from fastapi import FastAPI

from laneway import Laneway, SyncContext
from laneway.api.http.server import listen, url_of
from laneway.integrations.fastapi import lifespan

lw = Laneway()
IN_PROCESS = "bench_burn_process"
IN_THREAD = "bench_burn_thread"


def _burn(ctx: SyncContext, seconds: float) -> int:
    """Count in a loop that releases the GIL only when the interpreter forces it."""
    until = time.monotonic() + seconds
    n = 0
    while time.monotonic() < until:
        n += sum(range(1000))
    return n


lw.handler(IN_PROCESS, isolation="process", max_retries=0)(_burn)
lw.handler(IN_THREAD, isolation="thread", max_retries=0)(_burn)
app = FastAPI(lifespan=lifespan(lw))


@app.get("/ping")
async def ping() -> str:
    """A route of the application, whose latency is measured."""
    return "pong"


if __name__ == "__main__":
    with listen("127.0.0.1", 0) as bound:
        print(f"serving {url_of(bound)}", flush=True)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        server.run(sockets=[bound])
