"""A worker with a token and no database: a server sends it jobs.

    python examples/remote_worker.py

It starts the server and the worker as separate processes. It prints:

    HELLO FROM AFAR, without a database
"""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

from laneway import Context, Laneway
from laneway.control import access, lanes

lw = Laneway()


@lw.handler("shout", lane="far")
async def shout(ctx: Context, text: str) -> str:
    has_database = "LANEWAY_DATABASE_URL" in os.environ
    return f"{text.upper()}, {'with' if has_database else 'without'} a database"


async def main() -> None:
    async with lw:
        token = await make_token()
        port = free_port()
        dsn = lw.database.dsn
        server = start(
            ["server", "--port=0", "--grpc", f"--grpc-port={port}"], LANEWAY_DATABASE_URL=dsn
        )
        worker = start(
            ["remote-worker", "remote_worker:lw", f"--server=127.0.0.1:{port}"], LANEWAY_TOKEN=token
        )
        try:
            job = await shout.submit(text="hello from afar")
            print(await job.wait(timeout=60))
        finally:
            for process in (worker, server):
                process.terminate()
                process.wait()


async def make_token() -> str:
    """Create a service that may only claim jobs of one lane, and its token."""
    db, by = lw.database, "example"
    await lanes.create(db, {"name": "far", "job_types": ["shout"], "max_slots": None}, by=by)
    await access.create_principal(db, "robot", "service", by=by)
    await access.grant_role(db, "robot", "remote_worker", "all", lanes=["far"], by=by)
    made = await access.create_token(db, "robot", name="example", by=by)
    return made.secret


def start(command: list[str], **variables: str) -> subprocess.Popen[bytes]:
    kept = {k: v for k, v in os.environ.items() if k != "LANEWAY_DATABASE_URL"}
    return subprocess.Popen(
        [sys.executable, "-m", "laneway", *command],
        cwd=Path(__file__).parent,
        env={**kept, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


if __name__ == "__main__":
    asyncio.run(main())
