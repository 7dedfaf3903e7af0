"""Approve or reject every job that awaits a decision: python -m tests.crash.approver NAME."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path

import psycopg

from laneway import Laneway
from laneway.errors import Refused

AT_A_TIME = 5
# The oldest first, so that two approvers decide about the same job.
_WAITING = (
    "select j.id::text, j.payload ->> 'fate'"
    " from laneway.awaiting w join laneway.jobs j using (seq)"
    f" order by w.seq limit {AT_A_TIME}"
)


async def main(name: str) -> None:
    met: set[str] = set()
    dsn = os.environ["LANEWAY_DATABASE_URL"]
    # Some jobs are decided only when the test starts both approvers at once.
    meeting = Path(os.environ["CRASH_SINK"], "meeting")
    async with (
        Laneway(dsn) as client,
        await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn,
    ):
        while True:
            cursor = await conn.execute(_WAITING)
            for job, fate in await cursor.fetchall():
                if job not in met and (fate != "meeting" or meeting.exists()):
                    met.add(job)
                    is_yes = fate == "changed" or random.random() < 0.7
                    await decide(client, name, job, "approved" if is_yes else "rejected")
            await asyncio.sleep(0.02)


async def decide(client: Laneway, name: str, job: str, decision: str) -> None:
    note(name, job, decision, "invoke")
    try:
        if decision == "approved":
            await client.approve(job, by=name)
        else:
            await client.reject(job, by=name, reason="too dear")
    except Refused:
        note(name, job, decision, "fail")
    else:
        note(name, job, decision, "ok")


def note(name: str, job: str, decision: str, phase: str) -> None:
    """Write one whole line at once: a kill never leaves half a line."""
    event = {
        "what": "decide",
        "job": job,
        "at": time.time(),
        "more": {"who": name, "decision": decision, "phase": phase},
    }
    path = Path(os.environ["CRASH_SINK"], f"{name}.jsonl")
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, json.dumps(event).encode() + b"\n")
    finally:
        os.close(fd)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
