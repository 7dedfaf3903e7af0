"""Pydantic models made from the types of the domain, for OpenAPI and for assistants."""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import cache
from inspect import getdoc
from typing import Annotated, Any, Optional, get_args, get_origin

from pydantic import BaseModel, create_model

from laneway.domain.annotations import (
    ALWAYS_SENT,
    IF_TRUE,
    PRIVATE,
    Doc,
    NullWord,
    non_null,
    unwrap,
)
from laneway.domain.codec import json_fields, mapped_class


@cache
def output_model(kind: Any) -> type[BaseModel]:
    """The JSON of a dataclass: `LaneOut` of `Lane`, unless its `schema_name` is another."""
    shown: dict[str, Any] = {}
    for each in json_fields(kind):
        if each.is_inline:
            inner = output_model(unwrap(each.hint)[0])
            shown |= {name: (field.annotation, field) for name, field in inner.model_fields.items()}
        else:
            shown[each.name] = (output_type(each.hint), None if each.may_be_absent else ...)
    summary = (getdoc(kind) or "").split("\n\n")[0]
    name = getattr(kind, "schema_name", kind.__name__)
    return create_model(f"{name}Out", __doc__=summary, **shown)


def output_type(hint: Any) -> Any:
    """The type of an output: dataclasses are models, and ranges are left out.

    A newer version may have widened a range; what it wrote must still be readable.
    """
    kind, marks = unwrap(hint)
    if ALWAYS_SENT in marks:
        kind = non_null(kind)
    is_object: bool = is_dataclass(kind)
    if is_object:
        kind = output_model(kind)
    elif kind is object:
        kind = Any
    elif (inner := non_null(kind)) is not None:
        kind = Optional[output_type(inner)]  # noqa: UP045
    elif get_origin(kind) in (list, tuple):
        kind = list[output_type(get_args(kind)[0])]  # type: ignore[misc]
    elif (inner := mapped_class(kind)) is not None:
        kind = dict[str, output_model(inner)]  # type: ignore[misc]
    if PRIVATE in marks or IF_TRUE in marks:
        kind = Optional[kind]  # noqa: UP045
    docs = tuple(mark for mark in marks if isinstance(mark, (Doc, NullWord)))
    return Annotated[(kind, *docs)] if docs else kind
