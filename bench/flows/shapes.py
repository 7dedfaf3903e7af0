"""The shapes of flows: for each job the places of the jobs that it comes after."""

from __future__ import annotations

from collections.abc import Callable

LAYERS = 20
PARENTS = 3

# A job's parents are earlier places of the same list.
Shape = list[list[int]]


def fan_out(count: int) -> Shape:
    """One job, then all others."""
    return [[], *([0] for _ in range(count - 1))]


def fan_in(count: int) -> Shape:
    """All jobs, then one."""
    return [*([] for _ in range(count - 1)), list(range(count - 1))]


def layered(count: int) -> Shape:
    """Equal layers; each job comes after three jobs of the layer before."""
    width = count // LAYERS
    first: Shape = [[] for _ in range(width)]
    return first + [
        [(layer - 1) * width + (place + n) % width for n in range(PARENTS)]
        for layer in range(1, LAYERS)
        for place in range(width)
    ]


def chain(count: int) -> Shape:
    """Each job after the one before."""
    return [[], *([place] for place in range(count - 1))]


SHAPES: dict[str, Callable[[int], Shape]] = {
    "fanout": fan_out,
    "fanin": fan_in,
    "layered": layered,
    "chain": chain,
}
