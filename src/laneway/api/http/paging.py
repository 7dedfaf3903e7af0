"""Pages of lists: `limit` and `cursor` are sent, `items` and `next_cursor` are returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Annotated, Any, Final, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, model_validator

from laneway.domain.change import LARGEST_ID
from laneway.domain.page import page_by_name
from laneway.domain.verb_rules import LONGEST_PAGE
from laneway.errors import InvalidInput

T = TypeVar("T")
# Validation errors reported per request.
MAX_ERRORS: Final = 20

# The default of optional fields of a change. A factory keeps it out of the schema.
UNCHANGED: Any = Field(default_factory=lambda: None)


Limit = Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="Maximum number of items")]
Cursor = Annotated[
    str | None,
    Query(max_length=512, description="The `next_cursor` of the previous page"),
]


class RequestBody(BaseModel):
    """A request body: types are not coerced, and unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _few_unknown(cls, given: object) -> object:
        """Drop unknown fields beyond the number of errors that are reported."""
        if not isinstance(given, dict) or len(given) <= len(cls.model_fields) + MAX_ERRORS:
            return given
        known = {name: given[name] for name in cls.model_fields if name in given}
        unknown = (name for name in given if name not in cls.model_fields)
        return {**known, **dict.fromkeys(islice(unknown, MAX_ERRORS))}


class PageOut(BaseModel, Generic[T]):
    """One page of a list."""

    items: list[T]
    next_cursor: str | None = Field(description="The cursor of the next page; null: the last page")


def by_name(
    found: Iterable[T], name: Callable[[T], str], limit: int, cursor: str | None
) -> tuple[list[T], str | None]:
    """The items of a page by name, and the cursor of the next."""
    page = page_by_name(found, name, limit, cursor)
    return page.items, page.next_cursor


def id_of(cursor: str | None) -> int | None:
    """The id that a cursor contains."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 19):
        raise InvalidInput("cursor", "must be the next_cursor of a page")
    return min(int(cursor), LARGEST_ID)
