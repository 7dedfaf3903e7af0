"""Which workload runs on which system, and what fits into the time."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module

from bench.peers import systems
from bench.peers.system import System
from bench.peers.workload import Workload
from bench.peers.workloads import backlog, drain, handlers, held, start, submit

# Systems of this speed decide the figures.
FAST = 10_000
# In this order of importance; later ones are the first that a short run gives up.
WORKLOADS: list[Workload] = [
    drain.Drain(1),
    start.Start(),
    submit.SubmitMany(),
    drain.Drain(2),
    drain.Drain(16),
    backlog.Backlog(),
    backlog.Backlog(is_small=True),
    held.Held(),
    submit.Submit(),
    handlers.Waiting(1),
    handlers.Waiting(50),
    handlers.Computing(),
    drain.Drain(8),
]
_WITH_FIGURES = {
    *("drain_1p", "drain_2p", "drain_16p", "start", "submit_many"),
    *("backlog", "backlog_small", "held"),
}


def all_systems() -> list[System]:
    """The systems of every package below `systems`; Laneway comes first."""
    found = [
        system
        for module in pkgutil.iter_modules(systems.__path__)
        for system in import_module(f"{systems.__name__}.{module.name}").SYSTEMS
    ]
    return sorted(found, key=lambda system: (not system.is_ours, -system.pace, system.name))


@dataclass(frozen=True, slots=True)
class Cell:
    """One workload on one system."""

    workload: Workload
    system: System

    @property
    def key(self) -> tuple[str, str]:
        return self.workload.name, self.system.name

    @property
    def is_essential(self) -> bool:
        name, system = self.workload.name, self.system
        is_compared = system.pace >= FAST or (name == "start" and system.broker == "postgres")
        return name == "drain_1p" or (name in _WITH_FIGURES and is_compared)


def cells(chosen: list[System], workloads: Iterable[Workload]) -> list[Cell]:
    """All cells that can run: the systems of a workload stand next to each other."""
    return [
        Cell(workload, system)
        for workload in workloads
        for system in chosen
        if workload.name not in system.cannot
        # The short backlog is only compared with Laneway's own long one.
        and (workload.name != "backlog_small" or system.is_ours)
    ]


def turn(all_cells: list[Cell], number: int) -> list[Cell]:
    """The same cells for another round: each workload starts with another system."""
    ordered: list[Cell] = []
    names = dict.fromkeys(cell.workload.name for cell in all_cells)
    for name in names:
        group = [cell for cell in all_cells if cell.workload.name == name]
        start_at = number % len(group)
        ordered += group[start_at:] + group[:start_at]
    return ordered


def fitting(
    all_cells: list[Cell], costs: dict[tuple[str, str], float], rounds: int, seconds: float
) -> list[Cell]:
    """The cells that can run `rounds` more times; essential ones always do."""
    by_importance = sorted(all_cells, key=lambda cell: not cell.is_essential)
    kept: list[Cell] = []
    left = seconds
    for cell in by_importance:
        cost = costs.get(cell.key, 10.0) * rounds
        if cell.is_essential or cost <= left:
            kept.append(cell)
            left -= cost
    return [cell for cell in all_cells if cell in kept]
