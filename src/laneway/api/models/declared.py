"""Schemas of requests and responses, made from the declarations of operations."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import MISSING, fields
from datetime import datetime
from enum import Enum
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints
from uuid import UUID

from pydantic import (
    AwareDatetime,
    BaseModel,
    FailFast,
    Field,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
)

from laneway.api.http.paging import UNCHANGED, PageOut, RequestBody
from laneway.domain.annotations import HIDDEN, Doc, NullWord, find_mark, non_null, unwrap
from laneway.domain.payload import JsonText
from laneway.operations.models import output_model, output_type
from laneway.operations.operation import Operation

AnyOperation = Operation[Any, Any]


def response_model(operation: AnyOperation) -> Any:
    """The schema of the output."""
    if operation.item is not None:
        return page_model(operation.item)
    if operation.field is not None:
        shown: dict[str, Any] = {operation.field: (output_type(operation.output), ...)}
        return create_model(f"{_title(operation)}Out", **shown)
    return None if operation.output is NoneType else output_type(operation.output)


def page_model(item: type) -> type[BaseModel]:
    """The schema of a page of such items."""
    made: type[BaseModel] = PageOut.__class_getitem__(output_model(item))  # type: ignore[assignment]
    return made


def body_model(operation: AnyOperation) -> type[BaseModel] | None:
    """The schema of the body; None for an operation without one."""
    taken: dict[str, Any] = {}
    for each in operation.inputs_of("body"):
        for name, hint in each.settings.items():
            taken[name] = (_strict(hint), _default(operation.defaults, name))
        if not each.settings:
            taken[each.name] = (_strict(each.hint), ... if each.is_required else each.default)
    name = operation.body or f"{_title(operation)}Request"
    return create_model(name, __base__=RequestBody, **taken) if taken else None


def settings_model(
    name: str, settings: type, defaults: type, without: Collection[str] = ()
) -> type[BaseModel]:
    """The schema of a body that consists of settings."""
    taken: dict[str, Any] = {
        each: (_described(hint), _default(defaults, each))
        for each, hint in get_type_hints(settings, include_extras=True).items()
        if each not in without and HIDDEN not in unwrap(hint)[1]
    }
    return create_model(name, __base__=RequestBody, **taken)


def _described(hint: Any) -> Any:
    """The type of an input, with a description that a query shows too."""
    doc = None if find_mark(hint, NullWord) else find_mark(hint, Doc)
    return _strict(hint) if doc is None else Annotated[_strict(hint), Field(description=doc.text)]


def _default(defaults: type | None, name: str) -> Any:
    """The default that the schema shows for an optional setting."""
    known = () if defaults is None else fields(defaults)
    found = next((each for each in known if each.name == name), None)
    if found is None:
        return UNCHANGED
    if found.default_factory is not MISSING:
        return Field(default_factory=found.default_factory)
    if found.default is MISSING:
        return ...
    return Field(default_factory=list) if found.default == () else found.default


def _strict(hint: Any) -> Any:
    """The type of an input, as a request has it."""
    kind, marks = unwrap(hint)
    inner = non_null(kind)
    items, more = unwrap(kind if inner is None else inner)
    if get_origin(items) is dict:
        return Annotated[hint, WrapValidator(_object_or_text)]
    if items is datetime or (isinstance(items, type) and issubclass(items, (Enum, UUID))):
        # JSON has no type for times, enumerations and ids, so text is accepted.
        text: Any = Annotated[AwareDatetime if items is datetime else items, Field(strict=False)]
        return Annotated[(text if inner is None else text | None, *more, *marks, Field())]
    if get_origin(items) not in (list, Iterable):
        return hint
    made: Any = list[get_args(items)[0]]  # type: ignore[misc]
    # It stops at its first error: a request cannot make thousands of them.
    return Annotated[(made if inner is None else made | None, *more, *marks, FailFast())]


def _object_or_text(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Accept an object, or the JSON text of one, as large bodies have it."""
    if isinstance(value, JsonText) and value.startswith("{"):
        return value
    return validate(value)


def _title(operation: AnyOperation) -> str:
    return operation.name.title().replace("_", "")
