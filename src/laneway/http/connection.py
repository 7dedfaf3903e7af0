"""The address, token and headers of a server, and requests and responses of httpx2."""

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
from laneway.http.procedure import Open, Reply
from laneway.observability import tracing

Door = Literal["cli", "mcp", "python"]
UNREACHED: Final = "cannot be reached"
DOOR_HEADER: Final = "Laneway-Door"
LARGE_VALUES_HEADER: Final = "Laneway-Large-Values"
TOKEN_EXPIRES_HEADER: Final = "Laneway-Token-Expires-In"  # noqa: S105 - the name of a header
RETRIES: Final = 3
TIMEOUT_S: Final = 30.0
# The token syntax of RFC 6750.
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server's address and how to connect to it; its repr hides the token."""

    base_url: httpx2.URL
    door: Door
    timeout: float
    retries: int
    _token: str | None = field(repr=False)

    @classmethod
    def checked(
        cls,
        base_url: str,
        token: str | None,
        *,
        door: Door,
        timeout: float,
        retries: int,
        allow_insecure: bool,
    ) -> ServerAddress:
        """Check the address and the token; refuse to send a token over an insecure connection."""
        url = _checked_url(base_url)
        token = None if token is None else checked_token(token)
        is_exposed = url.scheme == "http" and not is_loopback(url.host)
        if token is not None and is_exposed and not allow_insecure:
            raise InvalidInput(
                "base_url",
                "must be https: plain http exposes the token on the network "
                "(allow_insecure=True permits it)",
            )
        return cls(url, door, timeout, retries, token)

    @property
    def options(self) -> dict[str, Any]:
        """Arguments for httpx2's clients."""
        headers = {DOOR_HEADER: self.door, "User-Agent": "laneway"}
        if self.door == "mcp":
            # Assistants use little of a megabyte, and parsing it blocks the MCP server.
            headers[LARGE_VALUES_HEADER] = "omit"
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        options = {"base_url": self.base_url, "headers": headers, "timeout": self.timeout}
        if self.base_url.scheme == "http":
            # Loopback requests bypass the proxies that the environment names.
            options["trust_env"] = not is_loopback(self.base_url.host)
            # Plain http needs no certificates: an empty context saves loading them.
            options["verify"] = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return options


def checked_token(text: str) -> str:
    """Strip and check a token. The error never shows it."""
    token = text.strip()
    if not _TOKEN.fullmatch(token):
        raise InvalidInput("token", "must be a token that `laneway tokens create` printed")
    return token


def _checked_url(text: str) -> httpx2.URL:
    try:
        url = httpx2.URL(text)
        url.host.encode("idna")
    except (httpx2.InvalidURL, TypeError, UnicodeError):
        raise InvalidInput("base_url", "must be a valid URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidInput("base_url", "must start with http:// or https:// and name a host")
    if url.userinfo:
        raise InvalidInput("base_url", "must not contain a password: use a token")
    if url.query or url.fragment:
        raise InvalidInput("base_url", "must not have a query or a fragment")
    return url


def arguments(call: Call[Any]) -> dict[str, Any]:
    """Arguments of httpx2's `request` for a call."""
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
    """Arguments of httpx2's `build_request` for a stream."""
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


def reply(response: httpx2.Response, url: httpx2.URL) -> Reply:
    """The reply of the server at `url`, with its body decoded."""
    kind = response.headers.get("content-type", "")
    body: Any = None
    if response.content and kind.partition(";")[0].endswith("json"):
        try:
            body = json.loads(response.content)
        except (ValueError, RecursionError):
            body = None
    return Reply(response.status_code, body, _headers(response), url=str(url))


def opened(response: httpx2.Response) -> Reply:
    """The reply that opens a stream."""
    return Reply(response.status_code, None, _headers(response))


def token_expires_in(response: httpx2.Response) -> float | None:
    """The seconds until the token expires, if the server says that this is soon."""
    left_s = response.headers.get(TOKEN_EXPIRES_HEADER, "")
    return float(left_s) if left_s.isdecimal() else None


def _headers(response: httpx2.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def lost(error: httpx2.RequestError | httpx2.StreamError, url: httpx2.URL) -> Reply:
    """A reply without a response; `lost` has the reason."""
    why = str(error) or type(error).__name__
    if isinstance(error, httpx2.ProtocolError):
        # Its message may quote a header, and with it a token or a cookie.
        is_ours = isinstance(error, httpx2.LocalProtocolError)
        why = "the request is not valid HTTP" if is_ours else "the response is not valid HTTP"
    return Reply(lost=f"the server at {url} {UNREACHED}: {why}")
