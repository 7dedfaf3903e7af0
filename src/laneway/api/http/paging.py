"""Lists as pages: `limit` and `cursor` in, `items` and `next_cursor` out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Annotated, Any, Final, Generic, TypeVar
from uuid import UUID

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, model_validator

from laneway.domain.change import LARGEST_ID
from laneway.domain.page import page_by_name
from laneway.domain.verb_rules import LONGEST_PAGE
from laneway.errors import InvalidInput

T = TypeVar("T")
# Of one request, shown and made.
MOST_ERRORS: Final = 20

# The default of what a change need not name; made by a factory, the schema shows no value for it.
UNCHANGED: Any = Field(default_factory=lambda: None)


Limit = Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="Longest page")]
Cursor = Annotated[
    str | None,
    Query(max_length=512, description="The `next_cursor` of the page before"),
]


class RequestBody(BaseModel):
    """What a client sends: nothing is coerced, and fields nobody knows are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _few_unknown(cls, given: object) -> object:
        """What was given, with so many unknown fields only as errors are shown."""
        if not isinstance(given, dict) or len(given) <= len(cls.model_fields) + MOST_ERRORS:
            return given
        known = {name: given[name] for name in cls.model_fields if name in given}
        unknown = (name for name in given if name not in cls.model_fields)
        return {**known, **dict.fromkeys(islice(unknown, MOST_ERRORS))}


class PageOut(BaseModel, Generic[T]):
    """A part of a list."""

    items: list[T]
    next_cursor: str | None = Field(description="Asks for the page after; null: this is the last")


def by_name(
    found: Iterable[T], name: Callable[[T], str], limit: int, cursor: str | None
) -> tuple[list[T], str | None]:
    """The items of a page by name, and the cursor of the next."""
    made = page_by_name(found, name, limit, cursor)
    return made.items, made.next_cursor


def id_of(cursor: str | None) -> int | None:
    """The id a cursor of ours stands for."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 19):
        raise InvalidInput("cursor", "must be the next_cursor of a page")
    return min(int(cursor), LARGEST_ID)


def uuid_of(cursor: str | None) -> UUID | None:
    """The id a cursor of ours stands for."""
    try:
        return None if cursor is None else UUID(cursor)
    except ValueError:
        raise InvalidInput("cursor", "must be the next_cursor of a page") from None
