"""Parses requests; counts their parts before any object is built.

A message of a few megabytes may hold millions of empty parts, each of which becomes an object of
a hundred bytes or more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeVar

from google.protobuf.message import DecodeError, Message

from laneway.errors import InvalidInput

# Smaller messages hold too few parts to be worth counting.
SMALL_BYTES: Final = 4 * 1024
# The most fields of one message, nested and unknown ones included.
MAX_FIELDS: Final = 100_000
_DEEPEST: Final = 16
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Q = TypeVar("Q", bound=Message)


def parse(kind: type[Q], data: bytes, most: Mapping[str, int]) -> Q:
    """The request; `most` bounds the parts of each repeated field, by name.

    Raises InvalidInput for more parts, before any is built, and DecodeError for invalid bytes.
    """
    if len(data) > SMALL_BYTES:
        _Count(most).walk(data, 0, len(data), kind.DESCRIPTOR, 0)
    return build(kind, data)


def build(kind: type[Q], data: bytes) -> Q:
    return kind.FromString(data)


class _Count:
    """Counts the fields of a message and of the messages in it."""

    def __init__(self, most: Mapping[str, int]) -> None:
        self._most = most
        self._found: Counter[str] = Counter()
        self._left = MAX_FIELDS

    def walk(self, data: bytes, at: int, end: int, of: Any, depth: int) -> None:
        if depth > _DEEPEST:
            raise DecodeError("nested too deeply")
        fields = _fields_of(of)
        while at < end:
            self._left -= 1
            if self._left < 0:
                raise InvalidInput("request", f"has more than {MAX_FIELDS} fields in one call")
            key = data[at]
            if key < 128:
                at += 1
            else:
                key, at = _varint(data, at, end)
            kind = key & 7
            if kind == _VARINT:
                _, at = _varint(data, at, end)
            elif kind == _BYTES:
                if at < end and (size := data[at]) < 128:
                    at += 1
                else:
                    size, at = _varint(data, at, end)
                if size > end - at:
                    raise DecodeError("cut off")
                field = fields.get(key >> 3)
                if field is not None:
                    name, inner = field
                    if name in self._most:
                        self._note(name)
                    if inner is not None:
                        self.walk(data, at, at + size, inner, depth + 1)
                at += size
            elif kind == _FIXED64:
                at += 8
            elif kind == _FIXED32:
                at += 4
            else:
                # No version of the protocol has groups.
                raise DecodeError("a group")
        if at > end:
            raise DecodeError("cut off")

    def _note(self, name: str) -> None:
        most = self._most[name]
        self._found[name] += 1
        if self._found[name] > most:
            raise InvalidInput(name, f"are more than {most}; at most {most} in one call")


@cache
def _fields_of(kind: Any) -> dict[int, tuple[str, Any]]:
    """The name of each field by its number, and its type if that may hold many parts."""
    return {
        field.number: (
            field.name,
            field.message_type
            if field.message_type is not None and _may_hold_many(field.message_type)
            else None,
        )
        for field in kind.fields
    }


@cache
def _may_hold_many(kind: Any) -> bool:
    """Whether a message of this type may become many objects.

    Without a repeated field, in it or in its parts, each of its fields becomes one at most, and
    unknown ones stay bytes. Only fields of a oneof that alternate become one object each, of about
    30 bytes: 29 MB for a message of 4 MiB. No type of the protocol contains itself.
    """
    return any(
        field.is_repeated or (field.message_type is not None and _may_hold_many(field.message_type))
        for field in kind.fields
    )


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise DecodeError("not a varint")
