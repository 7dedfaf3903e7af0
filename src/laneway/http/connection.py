"""Where a server is and how to come to it: checked once, and never told with its token."""

from __future__ import annotations

import json
import re
import ssl
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import httpx2

from laneway.domain.address import is_loopback
from laneway.errors import InvalidInput
from laneway.http.call import Call
from laneway.http.flow import Open, Reply
from laneway.observability import tracing

Door = Literal["cli", "mcp", "python"]
DOOR_HEADER: Final = "Laneway-Door"
LARGE_VALUES_HEADER: Final = "Laneway-Large-Values"
RETRIES: Final = 3
TIMEOUT_S: Final = 30.0
# What RFC 6750 lets stand behind `Bearer`.
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server's address, and with what to come there."""

    base_url: httpx2.URL
    door: Door
    timeout: float
    retries: int
    _token: str | None = field(repr=False)

    @classmethod
    def to(
        cls,
        base_url: str,
        token: str | None,
        *,
        door: Door,
        timeout: float,
        retries: int,
        allow_insecure: bool,
    ) -> ServerAddress:
        """Refuses an address that would show the token to others, and a token that is none."""
        url = _checked_url(base_url)
        token = None if token is None else checked_token(token)
        is_shown = url.scheme == "http" and not is_loopback(url.host)
        if token is not None and is_shown and not allow_insecure:
            raise InvalidInput(
                "base_url",
                "must be https: others could read the token on the way "
                "(allow_insecure=True sends it all the same)",
            )
        return cls(url, door, timeout, retries, token)

    @property
    def options(self) -> dict[str, Any]:
        """For httpx2's clients."""
        headers = {DOOR_HEADER: self.door, "User-Agent": "laneway"}
        if self.door == "mcp":
            # An assistant reads little of a megabyte, and parsing it stops the server.
            headers[LARGE_VALUES_HEADER] = "omit"
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        options = {"base_url": self.base_url, "headers": headers, "timeout": self.timeout}
        if self.base_url.scheme == "http":
            # What stays within the machine goes through no proxy that the environment names.
            options["trust_env"] = not is_loopback(self.base_url.host)
            # Trusts nobody, and saves reading whom to trust.
            options["verify"] = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return options


def checked_token(text: str) -> str:
    """The token without the white space around it; a refusal never shows it."""
    token = text.strip()
    if not _TOKEN.fullmatch(token):
        raise InvalidInput("token", "must be what `laneway tokens create` has shown")
    return token


def _checked_url(text: str) -> httpx2.URL:
    try:
        url = httpx2.URL(text)
        url.host.encode("idna")
    except (httpx2.InvalidURL, TypeError, UnicodeError):
        raise InvalidInput("base_url", "must be the address of a server") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidInput("base_url", "must begin with http:// or https:// and name a host")
    if url.userinfo:
        raise InvalidInput("base_url", "must hold no password: give a token")
    if url.query or url.fragment:
        raise InvalidInput("base_url", "must end with the path")
    return url


def arguments(call: Call[Any]) -> dict[str, Any]:
    """A call for httpx2's `request`."""
    headers = {}
    if call.body is not None:
        headers["Content-Type"] = "application/json"
    if call.key is not None:
        headers["Idempotency-Key"] = call.key
    if (trace := tracing.traceparent()) is not None:
        headers["traceparent"] = trace
    return {
        "method": call.method,
        "url": call.path,
        "params": list(call.params) or None,
        "content": call.body,
        "headers": headers,
    }


def stream_arguments(step: Open, timeout: float) -> dict[str, Any]:
    """A stream for httpx2's `build_request`."""
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    if step.last_id is not None:
        headers["Last-Event-ID"] = step.last_id
    silence = httpx2.Timeout(min(timeout, step.silence_s), read=step.silence_s)
    return {
        "method": "GET",
        "url": step.path,
        "params": list(step.params) or None,
        "headers": headers,
        "timeout": silence,
    }


def reply(answer: httpx2.Response, url: httpx2.URL) -> Reply:
    """What came back from the server at `url`, its body read."""
    kind = answer.headers.get("content-type", "")
    body: Any = None
    if answer.content and kind.partition(";")[0].endswith("json"):
        try:
            body = json.loads(answer.content)
        except (ValueError, RecursionError):
            body = None
    return Reply(answer.status_code, body, _told(answer), url=str(url))


def opened(answer: httpx2.Response) -> Reply:
    """The beginning of a stream."""
    return Reply(answer.status_code, None, _told(answer))


def _told(answer: httpx2.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers.items()}


def lost(error: httpx2.RequestError | httpx2.StreamError, url: httpx2.URL) -> Reply:
    """That nothing came back."""
    why = str(error) or type(error).__name__
    if isinstance(error, httpx2.ProtocolError):
        # Its own words may quote a header, and so a token or a cookie.
        is_ours = isinstance(error, httpx2.LocalProtocolError)
        why = "no such request can be sent" if is_ours else "it broke off, or speaks no HTTP"
    return Reply(lost=f"the server at {url} cannot be reached: {why}")
