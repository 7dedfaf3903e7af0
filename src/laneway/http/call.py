"""A request to the server as a value: built by pure functions, run by either client."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, Literal, NamedTuple, TypeVar
from urllib.parse import quote
from uuid import UUID, uuid4

from laneway.domain.page import Page
from laneway.errors import InvalidInput

T = TypeVar("T")
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class CallResponse(NamedTuple):
    """The response to a successful request."""

    status: int
    body: Any


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request and the decoder of its response.

    `key` is the Idempotency-Key: the server acts once however often it receives the request.
    """

    method: Method
    path: str
    decode: Callable[[CallResponse], T]
    params: Sequence[tuple[str, str]] = ()
    body: bytes | None = None
    key: str | None = None

    @property
    def is_repeatable(self) -> bool:
        """Whether the request can be sent twice without a second effect."""
        return self.method in ("GET", "PUT") or self.key is not None


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A request for a list, fetched page by page."""

    path: str
    decode_item: Callable[[Any], T]
    params: Sequence[tuple[str, str]] = ()

    def page(self, limit: int | None, cursor: str | None) -> Call[Page[T]]:
        position = query_params({"limit": limit, "cursor": cursor})
        return Call("GET", self.path, self._decode, (*self.params, *position))

    def _decode(self, response: CallResponse) -> Page[T]:
        items = [self.decode_item(item) for item in response.body["items"]]
        stopped = response.body.get("looked_back_to")
        looked_back_to = None if stopped is None else datetime.fromisoformat(stopped)
        return Page(items, response.body["next_cursor"], looked_back_to)


def once(call: Call[T], key: str | None = None) -> Call[T]:
    """Add an Idempotency-Key, for routes that accept one."""
    return replace(call, key=uuid4().hex if key is None else in_header(key, "idempotency_key"))


def in_header(text: str, field: str) -> str:
    """Check that a header can carry the text unchanged."""
    if not text or not text.isascii() or not text.isprintable() or text != text.strip():
        raise InvalidInput(field, "must be printable ASCII without a space at either end")
    return text


def in_path(name: object) -> str:
    """Quote a name as one path segment."""
    return quote(str(name), safe="")


def query_params(given: Mapping[str, object]) -> list[tuple[str, str]]:
    """Query parameters for the values that are not None."""
    return [(name, _query_text(value)) for name, value in given.items() if value is not None]


def _query_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime) else str(value)


def encoded(given: Mapping[str, object]) -> bytes:
    """Encode a request body as JSON."""
    try:
        return json.dumps(given, ensure_ascii=False, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("body", f"cannot be written as JSON: {error}") from None


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def listed(given: Iterable[str], field: str) -> list[str]:
    """Strings as a list. A single string is refused: it would become a list of letters."""
    if isinstance(given, str):
        raise InvalidInput(field, "must be a list of strings")
    return list(given)


def without_none(given: Mapping[str, object]) -> dict[str, object]:
    """Drop values that are None, so that the server's defaults apply."""
    return {name: value for name, value in given.items() if value is not None}
