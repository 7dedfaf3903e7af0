"""A scripted server: each request gets the next response of a list."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from uuid import UUID

import httpx2

from laneway.http import AsyncClient, Client

JOB = UUID("0199a4b0-0000-7000-8000-000000000001")
TOKEN = "lw_secret_of_a_caller"
Scripted = httpx2.Response | Exception


def job(status: str = "running", **more: Any) -> dict[str, Any]:
    return {"id": str(JOB), "job_type": "greet", "lane": "default", "status": status, **more}


def answer(status: int, body: Any = None, **headers: str) -> httpx2.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, json=body, headers=sent)


def problem(status: int, code: str, detail: str = "why", **more: Any) -> httpx2.Response:
    body = {"status": status, "code": code, "detail": detail, "request_id": "r1", **more}
    return httpx2.Response(
        status, content=json.dumps(body), headers={"content-type": "application/problem+json"}
    )


class ChunkedBody(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A body in chunks; an exception among them breaks it."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = pieces
        self.is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece

    def close(self) -> None:
        self.is_closed = True

    async def aclose(self) -> None:
        self.is_closed = True


def stream(*pieces: bytes | Exception) -> httpx2.Response:
    return httpx2.Response(
        200, headers={"content-type": "text/event-stream"}, stream=ChunkedBody(*pieces)
    )


def event(number: int, status: str, name: str = "job.changed", **more: Any) -> bytes:
    return f"id: {number}\nevent: {name}\ndata: {json.dumps(job(status, **more))}\n\n".encode()


def sse_event(number: str, name: str, data: Any) -> bytes:
    return f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode()


class ScriptedServer(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """A transport that returns or raises the next of its responses."""

    def __init__(self, *answers: Scripted) -> None:
        self.left = list(answers)
        self.requests: list[httpx2.Request] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        scripted = self.left.pop(0)
        if isinstance(scripted, Exception):
            raise scripted
        if isinstance(scripted.stream, ChunkedBody):
            return scripted
        return httpx2.Response(
            scripted.status_code, headers=scripted.headers, content=scripted.content
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return self.handle_request(request)

    def headers(self, name: str) -> list[str | None]:
        return [request.headers.get(name) for request in self.requests]


class LocalServer:
    """A real server or proxy that responds to every request with status ok."""

    BODY = b'{"status": "ok"}'

    def __init__(self) -> None:
        self.received: list[str] = []

    def __enter__(self) -> Self:
        received, body = self.received, self.BODY

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                received.append(self.requestline)
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *scripted: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class ClientRunner:
    """Runs the same call on the sync or the async client."""

    def __init__(self, kind: type[Client] | type[AsyncClient]) -> None:
        self.kind = kind

    def call(self, script: ScriptedServer, method: Callable[[Any], Any], **more: Any) -> Any:
        return self.call_at("http://localhost/api", method, transport=script, **more)

    def call_at(
        self, url: str, method: Callable[[Any], Any], token: str | None = TOKEN, **more: Any
    ) -> Any:
        if self.kind is Client:
            with Client(url, token, **more) as client:
                found = method(client)
                return list(found) if isinstance(found, Iterator) else found

        async def run() -> Any:
            async with AsyncClient(url, token, **more) as one:
                found = method(one)
                if isinstance(found, AsyncIterator):
                    return [each async for each in found]
                return await found

        return asyncio.run(run())
