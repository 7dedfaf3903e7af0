"""HTTP on one connection: bounds on how many, how long and how slowly.

A caller is not known before the head of its request is read, so every bound here holds for all.
"""

from __future__ import annotations

import asyncio
import logging
import typing
from collections.abc import Callable
from typing import Any, Final
from weakref import ref

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from laneway.api.http.bodies import GONE, UNREAD
from laneway.api.http.connections import Connections
from laneway.api.http.problems import MEDIA_TYPE, Problem
from laneway.domain.actor import new_request_id

log = logging.getLogger("laneway.api")

MOST_BYTES: Final = 64 * 1024
MOST_S: Final = 30.0
# After an early answer, what comes of the body is read and dropped for so long: a connection that
# is closed with unread data is reset, and the answer may be lost.
LINGER_S: Final = 2.0

_TITLES: Final = {
    400: ("Bad Request", "bad_request"),
    408: ("Request Timeout", "request_timeout"),
    503: ("Service Unavailable", "too_many_connections"),
}


class ConnectionSlot(typing.Protocol):
    """A place that another holder may give back."""

    def leave(self) -> None:
        """Give it back."""


class Protocol(HttpToolsProtocol):
    """Ends connections whose request does not begin or end in time, or has no end."""

    # Of the server; a subclass sets them.
    places: Connections | None = None
    body_s: float = 60.0
    # The place that this connection held until now.
    handshake: ConnectionSlot | None = None

    _is_in_head = _is_new = _is_lingering = False
    _size = 0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.handshake is not None:
            self.handshake.leave()
            self.handshake = None
        if self.places is not None and not self.places.add(self._address, self):
            self._refuse(503, "too many connections are open")
            return
        self._hurry(MOST_S, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._calm()
        if self.places is not None:
            self.places.remove(self._address, self)
        super().connection_lost(exc)
        # It refers to this protocol: nothing waits for the garbage collector.
        self.cycle = None  # type: ignore[assignment]

    @property
    def is_waiting(self) -> bool:
        """Whether no request is under way here."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete or self._is_in_head

    def drop(self) -> None:
        """End the connection at once, because another needs its place."""
        if self.places is not None:
            self.places.remove(self._address, self)
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
        self._calm()
        super().on_headers_complete()
        cycle = self.cycle
        self.scope[UNREAD] = _is_unread(cycle)  # type: ignore[typeddict-unknown-key]
        self.scope[GONE] = _is_gone(cycle)  # type: ignore[typeddict-unknown-key]
        cycle.transport = _Lingering(self)  # type: ignore[assignment]
        self._hurry(self.body_s, self._end_slow_body)

    def on_message_complete(self) -> None:
        self._calm()
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
            if self._size > MOST_BYTES:
                self.send_400_response("The head of the request is too large.")
        elif self._deadline is None:
            self._hurry(MOST_S, self.transport.close)

    def close_gently(self) -> None:
        """Close after what is left of an unread body came, or after a moment."""
        if self._is_lingering or self.transport.is_closing():
            return
        if not self.cycle.more_body:
            self.transport.close()
            return
        self._is_lingering = True
        self._calm()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._hurry(LINGER_S, self.transport.close)

    def send_400_response(self, msg: str) -> None:
        """Answer with a problem as everything else that is refused, under an id that is logged."""
        self._refuse(400, msg)

    def _end_slow_body(self) -> None:
        if self.cycle.response_started:
            self.transport.close()
        else:
            self._refuse(408, f"The body did not come within {self.body_s:g} s.")

    def _refuse(self, status: int, detail: str) -> None:
        own_id = new_request_id()
        log.info("no request was read: %s", detail, extra={"request_id": own_id})
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

    def _hurry(self, after_s: float, then: Any) -> None:
        self._calm()
        self._deadline = self.loop.call_later(after_s, then)

    def _calm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _is_gone(cycle: RequestResponseCycle) -> Callable[[], bool]:
    """Whether nobody waits for the answer any more, asked without keeping the cycle."""
    held = ref(cycle)

    def is_gone() -> bool:
        kept = held()
        return kept is None or kept.disconnected

    return is_gone


def _is_unread(cycle: RequestResponseCycle) -> Callable[[], bool]:
    """Whether some of a body has not come; holds no reference, because the cycle holds the scope.

    Else bodies would stay until the garbage collector finds the circle.
    """
    held = ref(cycle)

    def is_unread() -> bool:
        known = held()
        return known is not None and known.more_body

    return is_unread


class _Lingering:
    """The transport of one answer, whose end closes the connection gently."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self.write = protocol.transport.write
        self.is_closing = protocol.transport.is_closing

    def close(self) -> None:
        self._protocol.close_gently()
