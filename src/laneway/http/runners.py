"""Runners of procedures, one sync and one async."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing
from typing import Any, TypeVar

import httpx2

from laneway.domain.token import expiry_text
from laneway.http import connection
from laneway.http.call import Call
from laneway.http.connection import ServerAddress
from laneway.http.models import Event
from laneway.http.procedure import (
    Close,
    Emit,
    Open,
    Pause,
    Procedure,
    ReadBytes,
    Reply,
    Send,
    Step,
    perform,
)
from laneway.observability.safe_logger import SafeLogger

log = SafeLogger("laneway")

T = TypeVar("T")

_LOST = (httpx2.RequestError, httpx2.StreamError)


class TokenWatch:
    """Remembers that the token expires soon, and logs it once."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self.address = str(address.base_url)
        # Seconds, from the first response that had them; None: not soon.
        self.token_expires_in: float | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address!r})"

    def _note_expiry(self, response: httpx2.Response) -> None:
        left_s = connection.token_expires_in(response)
        if left_s is None or self.token_expires_in is not None:
            return
        self.token_expires_in = left_s
        # The command line prints a note instead.
        if self._address.door != "cli":
            log.warning("the token for %s %s", self._address.base_url, expiry_text(left_s))


class SyncRunner(TokenWatch):
    """Runs the steps of a procedure as plain calls."""

    def __init__(self, address: ServerAddress, transport: httpx2.BaseTransport | None) -> None:
        super().__init__(address)
        self._http = httpx2.Client(transport=transport, **address.options)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def perform(self, call: Call[T]) -> T:
        """Send a request, again if it fails, and return its decoded response."""
        return self.run(perform(call, self._address.retries))

    def run(self, procedure: Procedure[T]) -> T:
        """Run all steps and return the result of the procedure."""
        with closing(_Stream(self._http, self._address)) as stream:
            step_result: Any = None
            while True:
                try:
                    step = procedure.send(step_result)
                except StopIteration as end:
                    result: T = end.value
                    return result
                step_result = self._run_step(step, stream)

    def emit(self, procedure: Procedure[None]) -> Iterator[Event]:
        """Run all steps and yield the emitted events."""
        with closing(_Stream(self._http, self._address)) as stream:
            step_result: Any = None
            while True:
                try:
                    step = procedure.send(step_result)
                except StopIteration:
                    return
                if isinstance(step, Emit):
                    yield step.event
                    step_result = None
                else:
                    step_result = self._run_step(step, stream)

    def _run_step(self, step: Step, stream: _Stream) -> Any:
        match step:
            case Send(call):
                try:
                    response = self._http.request(**connection.arguments(call))
                    self._note_expiry(response)
                    return connection.reply(response, self._address.base_url)
                except _LOST as error:
                    return connection.lost(error, self._address.base_url)
            case Pause(seconds):
                time.sleep(seconds)
            case Open():
                return stream.open(step)
            case ReadBytes():
                return stream.read()
            case Close():
                stream.close()
        return None


class _Stream:
    """At most one open stream."""

    def __init__(self, http: httpx2.Client, address: ServerAddress) -> None:
        self._http = http
        self._address = address
        self._response: httpx2.Response | None = None
        self._chunks: Iterator[bytes] = iter(())

    def open(self, step: Open) -> Reply:
        self.close()
        arguments = connection.stream_arguments(step, self._address.timeout)
        request = self._http.build_request(**arguments)
        try:
            self._response = self._http.send(request, stream=True)
            if self._response.status_code != 200:
                self._response.read()
                return connection.reply(self._response, self._address.base_url)
        except _LOST as error:
            return connection.lost(error, self._address.base_url)
        self._chunks = self._response.iter_bytes()
        return connection.opened(self._response)

    def read(self) -> bytes | None:
        try:
            return next(self._chunks, None)
        except _LOST:
            return None

    def close(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None


class AsyncRunner(TokenWatch):
    """Runs the steps of a procedure in an event loop."""

    def __init__(self, address: ServerAddress, transport: httpx2.AsyncBaseTransport | None) -> None:
        super().__init__(address)
        self._http = httpx2.AsyncClient(transport=transport, **address.options)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def perform(self, call: Call[T]) -> T:
        """Send a request, again if it fails, and return its decoded response."""
        return await self.run(perform(call, self._address.retries))

    async def run(self, procedure: Procedure[T]) -> T:
        """Run all steps and return the result of the procedure."""
        async with aclosing(_AsyncStream(self._http, self._address)) as stream:
            step_result: Any = None
            while True:
                try:
                    step = procedure.send(step_result)
                except StopIteration as end:
                    result: T = end.value
                    return result
                step_result = await self._run_step(step, stream)

    async def emit(self, procedure: Procedure[None]) -> AsyncIterator[Event]:
        """Run all steps and yield the emitted events."""
        async with aclosing(_AsyncStream(self._http, self._address)) as stream:
            step_result: Any = None
            while True:
                try:
                    step = procedure.send(step_result)
                except StopIteration:
                    return
                if isinstance(step, Emit):
                    yield step.event
                    step_result = None
                else:
                    step_result = await self._run_step(step, stream)

    async def _run_step(self, step: Step, stream: _AsyncStream) -> Any:
        match step:
            case Send(call):
                try:
                    response = await self._http.request(**connection.arguments(call))
                    self._note_expiry(response)
                    return connection.reply(response, self._address.base_url)
                except _LOST as error:
                    return connection.lost(error, self._address.base_url)
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Open():
                return await stream.open(step)
            case ReadBytes():
                return await stream.read()
            case Close():
                await stream.aclose()
        return None


class _AsyncStream:
    """At most one open stream."""

    def __init__(self, http: httpx2.AsyncClient, address: ServerAddress) -> None:
        self._http = http
        self._address = address
        self._response: httpx2.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    async def open(self, step: Open) -> Reply:
        await self.aclose()
        arguments = connection.stream_arguments(step, self._address.timeout)
        request = self._http.build_request(**arguments)
        try:
            self._response = await self._http.send(request, stream=True)
            if self._response.status_code != 200:
                await self._response.aread()
                return connection.reply(self._response, self._address.base_url)
        except _LOST as error:
            return connection.lost(error, self._address.base_url)
        self._chunks = self._response.aiter_bytes()
        return connection.opened(self._response)

    async def read(self) -> bytes | None:
        if self._chunks is None:
            return None
        try:
            return await anext(self._chunks, None)
        except _LOST:
            return None

    async def aclose(self) -> None:
        if self._response is not None:
            await self._response.aclose()
            self._response = self._chunks = None
