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
    """What came back from a request that was not refused."""

    status: int
    body: Any


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request and how to read its answer.

    `key` is its Idempotency-Key: however often the request is sent, it is done once.
    """

    method: Method
    path: str
    decode: Callable[[CallResponse], T]
    params: Sequence[tuple[str, str]] = ()
    body: bytes | None = None
    key: str | None = None

    @property
    def is_repeatable(self) -> bool:
        """Whether sending it again changes nothing that the first time did not."""
        return self.method in ("GET", "PUT") or self.key is not None


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list that is read page by page."""

    path: str
    decode_item: Callable[[Any], T]
    params: Sequence[tuple[str, str]] = ()

    def page(self, limit: int | None, cursor: str | None) -> Call[Page[T]]:
        place = words({"limit": limit, "cursor": cursor})
        return Call("GET", self.path, self._decode, (*self.params, *place))

    def _decode(self, answer: CallResponse) -> Page[T]:
        items = [self.decode_item(item) for item in answer.body["items"]]
        stopped = answer.body.get("looked_back_to")
        looked_back_to = None if stopped is None else datetime.fromisoformat(stopped)
        return Page(items, answer.body["next_cursor"], looked_back_to)


def once(call: Call[T], key: str | None = None) -> Call[T]:
    """The call with an Idempotency-Key, for routes that take one."""
    return replace(call, key=uuid4().hex if key is None else in_header(key, "idempotency_key"))


def in_header(text: str, field: str) -> str:
    """A text that a header can carry as it is."""
    if not text or not text.isascii() or not text.isprintable() or text != text.strip():
        raise InvalidInput(field, "must be printable ASCII, with no blank at either end")
    return text


def in_path(name: object) -> str:
    """A name as one segment of a path."""
    return quote(str(name), safe="")


def words(given: Mapping[str, object]) -> list[tuple[str, str]]:
    """What was given, as a query."""
    return [(name, _word(value)) for name, value in given.items() if value is not None]


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime) else str(value)


def encoded(given: Mapping[str, object]) -> bytes:
    """What is sent, as JSON."""
    try:
        return json.dumps(given, ensure_ascii=False, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("body", f"cannot be written as JSON: {error}") from None


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def listed(given: Iterable[str], field: str) -> list[str]:
    """Texts as a list; one text is no list of its letters."""
    if isinstance(given, str):
        raise InvalidInput(field, "must be a list of texts")
    return list(given)


def said(given: Mapping[str, object]) -> dict[str, object]:
    """Only what was said: what is left out keeps the server's default."""
    return {name: value for name, value in given.items() if value is not None}
