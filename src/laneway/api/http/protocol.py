"""HTTP on one connection, with bounds on their number, duration and speed.

The caller is unknown until the head of its request is read, so the bounds apply to all.
"""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Callable
from typing import Any, Final
from weakref import ref

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from laneway.api.http.bodies import GONE, UNREAD
from laneway.api.http.connections import Connections
from laneway.api.http.problems import MEDIA_TYPE, Problem
from laneway.domain.actor import new_request_id
from laneway.observability.safe_logger import SafeLogger

log = SafeLogger("laneway.api")

MAX_BYTES: Final = 64 * 1024
MAX_S: Final = 30.0
# How long the rest of a body is read and dropped after an early response. A connection closed with
# unread data is reset, and the response may be lost.
LINGER_S: Final = 2.0

_TITLES: Final = {
    400: ("Bad Request", "bad_request"),
    408: ("Request Timeout", "request_timeout"),
    503: ("Service Unavailable", "too_many_connections"),
}


class ConnectionSlot(typing.Protocol):
    """A counted connection slot that can be released."""

    def leave(self) -> None:
        """Release it."""


class Protocol(HttpToolsProtocol):
    """Closes connections whose request does not start or end in time, or is too large."""

    # Per server; a subclass sets them.
    slots: Connections | None = None
    body_s: float = 60.0
    # The slot that this connection held during its TLS handshake.
    handshake: ConnectionSlot | None = None

    _is_in_head = _is_new = _is_lingering = False
    _size = 0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.handshake is not None:
            self.handshake.leave()
            self.handshake = None
        if self.slots is not None and not self.slots.add(self._address, self):
            self._refuse(503, "too many connections are open")
            return
        self._set_deadline(MAX_S, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        if self.slots is not None:
            self.slots.remove(self._address, self)
        super().connection_lost(exc)
        # Break the reference cycle, so that memory is freed without the garbage collector.
        self.cycle = None  # type: ignore[assignment]

    @property
    def is_waiting(self) -> bool:
        """Whether no request is in progress."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete or self._is_in_head

    def drop(self) -> None:
        """Close the connection immediately, because another one needs its slot."""
        if self.slots is not None:
            self.slots.remove(self._address, self)
        self.transport.abort()

    @property
    def _address(self) -> str | None:
        return self.client[0] if self.client else None

    def on_message_begin(self) -> None:
        self._is_in_head = self._is_new = True
        self._size = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._clear_deadline()
        super().on_headers_complete()
        cycle = self.cycle
        self.scope[UNREAD] = _is_unread(cycle)  # type: ignore[typeddict-unknown-key]
        self.scope[GONE] = _is_gone(cycle)  # type: ignore[typeddict-unknown-key]
        cycle.transport = _LingeringTransport(self)  # type: ignore[assignment]
        self._set_deadline(self.body_s, self._end_slow_body)

    def on_message_complete(self) -> None:
        self._clear_deadline()
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        if self._is_lingering or self.transport.is_closing():
            return
        self._is_new = False
        super().data_received(data)
        if not self._is_in_head:
            return
        if not self._is_new:
            self._size += len(data)
            if self._size > MAX_BYTES:
                self.send_400_response("The head of the request is too large.")
        elif self._deadline is None:
            self._set_deadline(MAX_S, self.transport.close)

    def close_gently(self) -> None:
        """Close once the rest of an unread body has arrived, or after LINGER_S."""
        if self._is_lingering or self.transport.is_closing():
            return
        if not self.cycle.more_body:
            self.transport.close()
            return
        self._is_lingering = True
        self._clear_deadline()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._set_deadline(LINGER_S, self.transport.close)

    def send_400_response(self, msg: str) -> None:
        """Send a problem, like every other error, with a request id that is also logged."""
        self._refuse(400, msg)

    def _end_slow_body(self) -> None:
        if self.cycle.response_started:
            self.transport.close()
        else:
            self._refuse(408, f"The body did not arrive within {self.body_s:g} s.")

    def _refuse(self, status: int, detail: str) -> None:
        own_id = new_request_id()
        log.info("request could not be read: %s", detail, extra={"request_id": own_id})
        title, code = _TITLES[status]
        problem = Problem(
            type=f"urn:laneway:problem:{code}",
            title=title,
            status=status,
            code=code,
            detail=detail,
            request_id=own_id,
        )
        body = problem.model_dump_json(exclude_none=True)
        head = (
            f"HTTP/1.1 {status} {title}",
            f"content-type: {MEDIA_TYPE}",
            f"content-length: {len(body)}",
            f"x-request-id: {own_id}",
            "connection: close",
        )
        self.transport.write("\r\n".join((*head, "", body)).encode("ascii"))
        self.transport.close()

    def _set_deadline(self, after_s: float, then: Any) -> None:
        self._clear_deadline()
        self._deadline = self.loop.call_later(after_s, then)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _is_gone(cycle: RequestResponseCycle) -> Callable[[], bool]:
    """A check whether the client has disconnected; it does not keep the cycle alive."""
    held = ref(cycle)

    def is_gone() -> bool:
        kept = held()
        return kept is None or kept.disconnected

    return is_gone


def _is_unread(cycle: RequestResponseCycle) -> Callable[[], bool]:
    """A check whether part of the body is still missing.

    It holds a weak reference: the cycle holds the scope, and a reference cycle would keep bodies in
    memory until the garbage collector runs.
    """
    held = ref(cycle)

    def is_unread() -> bool:
        known = held()
        return known is not None and known.more_body

    return is_unread


class _LingeringTransport:
    """The transport of one response; closing it closes the connection gently."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self.write = protocol.transport.write
        self.is_closing = protocol.transport.is_closing

    def close(self) -> None:
        self._protocol.close_gently()
