"""Refuses query parameters that a route does not have; ignoring one would hide a mistake."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from weakref import WeakKeyDictionary

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel

from laneway.errors import InvalidInput

_of_route: Final[WeakKeyDictionary[object, frozenset[str]]] = WeakKeyDictionary()


def check_parameters(request: Request) -> None:
    """Refuse a request with a query parameter that its route does not have."""
    route = request.scope.get("route")
    if not request.scope["query_string"] or not isinstance(route, APIRoute):
        return
    known = _of_route.get(route.endpoint)
    if known is None:
        known = _of_route[route.endpoint] = frozenset(_names(route.dependant))
    for name in request.query_params:
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise InvalidInput(f"query.{name}", f"unknown parameter; this route takes {names}")


def _names(dependant: Dependant) -> Iterator[str]:
    for field in dependant.query_params:
        model = field.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            yield from model.model_fields
        else:
            yield field.alias
    for inner in dependant.dependencies:
        yield from _names(inner)
