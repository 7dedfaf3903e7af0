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
from laneway.http.call import (
    Call,
    CallResponse,
    Listing,
    encoded,
    in_path,
    listed,
    once,
    query_params,
)
from laneway.operations.operation import Input, Invocation, Operation

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def call_of(operation: Operation[P, R]) -> Callable[P, Call[R]]:
    """The function that builds the request of an operation."""

    def build(*args: P.args, **kwargs: P.kwargs) -> Call[R]:
        return call_for(operation(*args, **kwargs))

    return update_wrapper(build, operation.declared)


def listing_of(operation: Operation[P, Page[T]]) -> Callable[P, Listing[T]]:
    """The function that builds the requests of a list."""

    def build(*args: P.args, **kwargs: P.kwargs) -> Listing[T]:
        return listing_for(operation(*args, **kwargs))

    return update_wrapper(build, operation.declared)


def call_for(asked: Invocation[R]) -> Call[R]:
    """The request of an operation with its arguments."""
    operation = asked.operation

    def decode(answer: CallResponse) -> R:
        shown = answer.body if operation.field is None else answer.body[operation.field]
        found: R = read(operation.output, shown)
        return found

    body = encoded(_fields(asked)) if operation.inputs_of("body") else None
    call = Call(operation.method, _path(asked), decode, _query(asked), body)
    return once(call) if operation.takes_key else call


def listing_for(asked: Invocation[Page[T]]) -> Listing[T]:
    """The requests of a list with its arguments."""
    item = asked.operation.item
    return Listing(_path(asked), lambda value: read(item, value), _query(asked))


def read(kind: Any, value: Any) -> Any:
    """A value of the server as its type."""
    try:
        return from_json(kind, value)
    except UnreadableJson as error:
        raise ServerError(f"the server's response was not understood: {error}") from None


def _path(asked: Invocation[Any]) -> str:
    taken = {each.name: each for each in asked.operation.inputs_of("path")}
    return re.sub(
        r"\{(\w+)\}",
        lambda found: _segment(taken[found[1]], asked.arguments[found[1]]),
        asked.operation.path,
    )


def _segment(taken: Input, value: object) -> str:
    checked = find_mark(taken.hint, CheckedBy)
    return in_path(value if checked is None else checked.check(value, taken.name))


def _query(asked: Invocation[Any]) -> list[tuple[str, str]]:
    given: dict[str, object] = {}
    for each in asked.operation.inputs_of("query"):
        value = asked.arguments.get(each.name)
        if each.settings and value is not None:
            given |= {name: getattr(value, name) for name in each.settings}
        else:
            given[each.name] = value
    return query_params(given)


def _fields(asked: Invocation[Any]) -> dict[str, object]:
    sent: dict[str, object] = {}
    for each in asked.operation.inputs_of("body"):
        value = asked.arguments.get(each.name)
        if each.settings:
            sent |= value or {}
        elif value is not None:
            sent[each.name] = listed(value, each.name) if each.is_list else value
        elif each.name in asked.arguments and each.default is not None:
            sent[each.name] = None
    return sent
