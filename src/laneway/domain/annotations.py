"""Marks on types: ranges, checks, and words for people, each stated once for every door.

Ranges and lengths are `annotated_types`. Pydantic understands these and the marks with a hook;
nothing here imports it. Ranges apply to input only: an output may come from a newer version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin


@dataclass(frozen=True, slots=True)
class Doc:
    """A phrase for people: in OpenAPI, in the help of the command line, for assistants."""

    text: str

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(core_schema), "description": self.text}


@dataclass(frozen=True, slots=True)
class Pattern:
    """The regular expression of a text."""

    regex: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        return {**handler(source), "pattern": self.regex}


@dataclass(frozen=True, slots=True)
class OneOf:
    """The words that a text may be."""

    words: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        return {"type": "literal", "expected": list(self.words)}


@dataclass(frozen=True, slots=True)
class CheckedBy:
    """The function that checks a value of the domain: `check(value, field)`."""

    check: Callable[[object, str], object]


@dataclass(frozen=True, slots=True)
class NullWord:
    """The word for null where null means "not given": an option's value, an assistant's flag.

    `means`: the effect of null, if the word alone does not say it.
    """

    word: str
    means: str | None = None

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        schema: dict[str, Any] = handler(core_schema)
        return {
            **schema,
            "description": f"{schema['description']}; null: {self.means or self.word}",
        }


class _Mark:
    """A mark without a value."""


# The fields of this dataclass are JSON fields of the one that holds it.
INLINE: Final = _Mark()
# A field that JSON does not show.
HIDDEN: Final = _Mark()
# A field that JSON shows only to those who may see private parts.
PRIVATE: Final = _Mark()
# A field that JSON shows only if it is true.
IF_TRUE: Final = _Mark()
# A field that a server always sends, although Python allows None.
ALWAYS_SENT: Final = _Mark()


def unwrap(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """The type of a hint, and its marks."""
    if get_origin(hint) is Annotated:
        kind, *marks = get_args(hint)
        return kind, tuple(marks)
    return hint, ()


def find_mark(hint: Any, kind: type[Any]) -> Any:
    """The first mark of a kind; None without one."""
    return next((mark for mark in unwrap(hint)[1] if isinstance(mark, kind)), None)


def non_null(kind: Any) -> Any:
    """The type that `X | None` allows besides null; None for any other type."""
    if get_origin(kind) not in (Union, UnionType) or NoneType not in get_args(kind):
        return None
    rest = tuple(each for each in get_args(kind) if each is not NoneType)
    return rest[0] if len(rest) == 1 else Union[rest]  # noqa: UP007


def bare(hint: Any) -> Any:
    """The type without its marks and without null."""
    kind, _ = unwrap(hint)
    inner = non_null(kind)
    return kind if inner is None else bare(inner)
