"""A fast survey of a tree of JSON values: its types and its depth."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Final

SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_CONTAINERS: Final = frozenset({dict, list, tuple})
PLAIN: Final = SCALARS | _CONTAINERS
_JUST_STR: Final = frozenset({str})


class HeavyTree(Exception):
    """The JSON text of the tree would be too large."""

    def __init__(self, weight: int) -> None:
        super().__init__(weight)
        self.weight = weight


def survey(value: object, max_depth: int, max_weight: int | None = None) -> set[type] | None:
    """The types in the tree, or None if its keys or its depth break a rule.

    Goes level by level, so that the work for each value is done in C and costs little next to
    writing the JSON. `max_weight` bounds the work, because a few shared lists can expand to an
    endless text; beyond it, HeavyTree is raised.
    """
    kinds = {type(value)}
    level: list[object] = [value] if type(value) in _CONTAINERS else []
    weight = depth = 0
    while level:
        depth += 1
        if depth > max_depth:
            return None
        objects = [node for node in level if isinstance(node, dict)]
        arrays = [node for node in level if isinstance(node, (list, tuple))]
        if not _JUST_STR.issuperset(map(type, chain.from_iterable(objects))):
            return None
        weight += 2 * len(level) + 4 * sum(map(len, objects)) + sum(map(len, arrays))
        if max_weight is not None and weight > max_weight:
            if _descends(value, max_depth):
                return None
            raise HeavyTree(weight)
        children = list(
            chain(chain.from_iterable(map(dict.values, objects)), chain.from_iterable(arrays))
        )
        found = set(map(type, children))
        kinds |= found
        is_last = found <= SCALARS
        level = [] if is_last else [child for child in children if type(child) in _CONTAINERS]
    return kinds


def _descends(value: object, max_depth: int) -> bool:
    """Whether the first array or object of each level goes deeper, as in a cycle."""
    for _ in range(max_depth):
        children = value.values() if isinstance(value, dict) else value
        if not isinstance(children, Iterable):
            return False
        value = next((child for child in children if type(child) in _CONTAINERS), None)
    return value is not None
