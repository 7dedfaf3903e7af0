"""Values without a JSON form in a tree that pydantic dumps: found by place and type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from laneway.domain.text import json_path
from laneway.errors import InvalidInput

# Stands for such a value in the dumped tree.
_MARK: Final = "\0unknown"


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
            raise InvalidInput(place, f"a {self._types[0]} is not a JSON value")


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
