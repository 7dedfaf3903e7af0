"""Writes values as JSON, including numbers and stored text that `json.dumps` cannot write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import isfinite
from typing import Any

from laneway.domain.stored_json import StoredJson

_omits_large: ContextVar[bool] = ContextVar("omits_large_values", default=False)


@contextmanager
def omitting_large_values(is_wanted: bool) -> Iterator[None]:
    """Replace large values with a note in all JSON that is written within this block."""
    token = _omits_large.set(is_wanted)
    try:
        yield
    finally:
        _omits_large.reset(token)


def omits_large_values() -> bool:
    """Whether this code runs inside `omitting_large_values(True)`."""
    return _omits_large.get()


def write_json(value: Any) -> bytes:
    """JSON of a value. PostgreSQL stores numbers that Python reads as infinite."""
    try:
        return _encode(value)
    except ValueError:
        return _encode_members(_finite(value))
    except TypeError:
        return _encode_members(value)


def _encode_members(value: Any) -> bytes:
    """JSON of a value that may hold stored JSON, member by member."""
    if isinstance(value, StoredJson):
        return _stored(value)
    if not isinstance(value, dict):
        return _encode(value)
    members = (b"%b:%b" % (_encode(name), write_json(each)) for name, each in value.items())
    return b"{%b}" % b",".join(members)


def _encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _stored(value: StoredJson) -> bytes:
    if not _omits_large.get():
        return value.text
    size = len(value.text)
    return _encode({"left_out": f"{size} bytes of JSON: read it with GET /jobs/{{id}}"})


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not isfinite(value):
        return json.dumps(value)
    return value
