"""Values without a JSON form in a tree that pydantic dumps: found by place and type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from laneway.domain.text import json_path
from laneway.errors import InvalidInput

NOT_AWAITED: Final = "is an await missing?"
# Stands for such a value in the dumped tree.
_MARK: Final = "\0unknown"


def not_json(type_name: str) -> str:
    """The rule that a value of this type breaks."""
    article = "an" if type_name[:1] in "AEIOaeio" else "a"
    question = f"; {NOT_AWAITED}" if type_name == "coroutine" else ""
    return f"{article} {type_name} is not a JSON value{question}"


class UnknownValues:
    """The `fallback` of a dump; `check` then names the first value that it replaced."""

    def __init__(self) -> None:
        self._types: list[str] = []

    def __call__(self, value: object) -> str:
        self._types.append(type(value).__name__)
        return _MARK

    def check(self, dumped: object, field: str) -> None:
        """Raise InvalidInput if the dump met such a value."""
        if self._types:
            place = json_path(field, _find(dumped) or ())
            raise InvalidInput(place, not_json(self._types[0]))


def _find(tree: object) -> tuple[object, ...] | None:
    """The keys that lead to the first mark in a tree of JSON values."""
    if tree == _MARK:
        return ()
    items: Iterable[tuple[object, object]] = ()
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list):
        items = enumerate(tree)
    for key, child in items:
        if (found := _find(child)) is not None:
            return (key, *found)
    return None
