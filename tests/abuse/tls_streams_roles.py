"""Hostile use of TLS, streams, bounded grants and limited database roles."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import psycopg

from laneway.store.grants import grants
from tests.abuse.case import Case, Reply, Target, exchange, http, request_bytes
from tests.rpc.certificates import make_certificate

ROLE = "laneway_abused"
PLACES = 50
SILENT = 600


@contextlib.asynccontextmanager
async def _tls_server(target: Target) -> AsyncIterator[tuple[int, int]]:
    """Run another server with a certificate; yield its process and port."""
    with tempfile.TemporaryDirectory(prefix="laneway-abuse-tls-") as name:
        cert, key = make_certificate(Path(name))
        command = ["-m", "laneway", "server", "--port", "0"]
        options = ["--tls-cert", str(cert), "--tls-key", str(key)]
        variables = {"LANEWAY_DATABASE_URL": target.dsn, "LANEWAY_MAX_CONNECTIONS": str(PLACES)}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            *options,
            env={**os.environ, "LANEWAY_LOG_LEVEL": "WARNING", **variables},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                port = re.search(rb"serving https://\S+?:(\d+)", line)
                if port is not None:
                    yield process.pid, int(port[1])
                    break
        finally:
            process.terminate()
            await process.wait()


async def _silent_handshakes(target: Target) -> Reply:
    async with _tls_server(target) as (pid, port):
        server = psutil.Process(pid)
        before = server.num_fds()
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(SILENT)]
        # The server closes connections beyond its limit.
        ends = {asyncio.ensure_future(_end(reader)) for reader, _ in opened}
        ended = 0
        while ended < SILENT - PLACES:
            done, ends = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            ended += len(done)
        # A socket is closed soon after its end is sent, long before the deadline of 10 s.
        held = SILENT
        for _ in range(60):
            held = server.num_fds() - before
            if held <= PLACES + 20:
                break
            await asyncio.sleep(0.05)
        for end in ends:
            end.cancel()
        for _, writer in opened:
            writer.close()
    return Reply("bounded" if held <= PLACES + 20 else f"{held} descriptors")


async def _end(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionError):
        await reader.read()


async def _large_streams(target: Target) -> Reply:
    """Streams of a large job, each read until its first event is whole."""
    ask = request_bytes(target, "GET", f"/jobs/{target.jobs['lists']}/stream", "viewer")

    async def first() -> Reply:
        reader, writer = await asyncio.open_connection(target.host, target.port)
        try:
            writer.write(ask)
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head[:20]:
                return Reply(head[:20].decode("latin-1"))
            await _until(reader, b"data: ")
            await _until(reader, b"\n\n")
            return Reply(200)
        finally:
            writer.close()

    replies = await asyncio.gather(*(first() for _ in range(10)))
    return next((one for one in replies if one.status != 200), Reply(200))


async def _until(reader: asyncio.StreamReader, word: bytes) -> None:
    seen = b""
    while word not in seen:
        got = await reader.read(65536)
        if not got:
            raise ConnectionError("the stream ended before its first event")
        seen = seen[-len(word) :] + got


def _sql(name: str, roles: tuple[str, ...], statement: str) -> Case:
    """A statement by a limited role, in a transaction that is rolled back."""

    def run(target: Target) -> Reply:
        with target.connection() as conn, conn.transaction(force_rollback=True):
            conn.execute(f"create role {ROLE} nologin")
            conn.execute(grants(roles, ROLE, "nobody").encode())
            conn.execute(f"set local role {ROLE}")
            try:
                conn.execute(statement.encode())
            except psycopg.errors.InsufficientPrivilege:
                return Reply("refused")
        return Reply("done")

    async def send(target: Target) -> Reply:
        return await asyncio.to_thread(run, target)

    return Case(f"sql {name} as {' and '.join(roles)}", "sql", send, ("refused",))


def _roles() -> Iterator[Case]:
    job = (
        "insert into laneway.jobs (seq, id, job_type, payload)"
        " values (0, gen_random_uuid(), 'x', '{}')"
    )
    decision = "insert into laneway.decisions (seq, decision) values (1, 'approved')"
    policy = "update laneway.job_types set approval = 'never'"
    for role in ("client", "approver", "handler", "reader"):
        yield _sql("job past submit", (role,), job)
        yield _sql("decision past approve", (role,), decision)
        yield _sql("policy", (role,), policy)
        yield _sql("audit rewritten", (role,), "delete from laneway.audit")
        yield _sql("tokens", (role,), "select * from laneway.tokens")
    yield _sql("submit", ("reader",), "select laneway.submit('x', '{}')")


async def _many_types(target: Target) -> Reply:
    jobs = [{"job_type": f"new-{n}", "workspace": "mine", "payload": {}} for n in range(150)]
    body = json.dumps({"jobs": jobs}).encode()
    return await exchange(
        target, request_bytes(target, "POST", "/jobs/batch", "submitter", None, body)
    )


def _bounds() -> Iterator[Case]:
    job = {"job_type": "abused", "workspace": "mine", "payload": {}}
    yield http(
        "priority above the grant",
        "POST",
        "/jobs",
        422,
        who="submitter",
        body={**job, "priority": 32767},
    )
    yield Case("job types above the grant", "http", _many_types, (422,))


CASES = [
    Case("tls silent handshakes", "tls", _silent_handshakes, ("bounded",)),
    Case("streams of a large job", "sse", _large_streams, (200,), cpu_s=2.0, memory_mb=128.0),
    *_bounds(),
    *_roles(),
]
