"""Requests of the client, made from the declarations of operations."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, ParamSpec, TypeVar

from laneway.domain.annotations import CheckedBy, find_mark
from laneway.domain.codec import UnreadableJson, from_json
from laneway.domain.page import Page
from laneway.errors import ServerError
from laneway.http.call import Call, CallResponse, Listing, encoded, in_path, once, query_params
from laneway.operations.operation import Input, Operation

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def call_of(operation: Operation[P, R]) -> Callable[P, Call[R]]:
    """The function that builds the request of an operation."""

    def build(*args: P.args, **kwargs: P.kwargs) -> Call[R]:
        given = operation.bind(*args, **kwargs)
        body = encoded(_fields(operation, given)) if operation.inputs_of("body") else None
        call: Call[R] = Call(
            operation.method, _path(operation, given), _decode, _query(operation, given), body
        )
        return once(call) if operation.takes_key else call

    def _decode(answer: CallResponse) -> R:
        shown = answer.body if operation.field is None else answer.body[operation.field]
        found: R = read(operation.output, shown)
        return found

    return update_wrapper(build, operation.declared)


def listing_of(operation: Operation[P, Page[T]]) -> Callable[P, Listing[T]]:
    """The function that builds the requests of a list."""

    def build(*args: P.args, **kwargs: P.kwargs) -> Listing[T]:
        given = operation.bind(*args, **kwargs)
        item = operation.item
        return Listing(
            _path(operation, given), lambda value: read(item, value), _query(operation, given)
        )

    return update_wrapper(build, operation.declared)


def read(kind: Any, value: Any) -> Any:
    """A value of the server as its type."""
    try:
        return from_json(kind, value)
    except UnreadableJson as error:
        raise ServerError(f"the server's response was not understood: {error}") from None


def _path(operation: Operation[Any, Any], given: dict[str, Any]) -> str:
    taken = {each.name: each for each in operation.inputs_of("path")}
    return re.sub(r"\{(\w+)\}", lambda m: _segment(taken[m[1]], given[m[1]]), operation.path)


def _segment(taken: Input, value: object) -> str:
    checked = find_mark(taken.hint, CheckedBy)
    return in_path(value if checked is None else checked.check(value, taken.name))


def _query(operation: Operation[Any, Any], given: dict[str, Any]) -> list[tuple[str, str]]:
    asked = (each.name for each in operation.inputs_of("query"))
    return query_params({name: given[name] for name in asked if name in given})


def _fields(operation: Operation[Any, Any], given: dict[str, Any]) -> dict[str, object]:
    sent: dict[str, object] = {}
    for each in operation.inputs_of("body"):
        if each.name in given:
            value = given[each.name]
            sent |= value if each.settings else {each.name: value}
    return sent
