"""Figures of Laneway beside the best of the others, with their targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bench.figures import Target, Targets
from bench.peers.results import Results

OURS = "laneway"
GRAPHILE = "graphile-worker batched"

TARGETS: Targets = {
    "drain_1p_vs_best": Target(1.1),
    "drain_1p_vs_best_python": Target(2.0),
    "drain_2p_vs_best": Target(1.1),
    "drain_2p_vs_best_python": Target(1.7),
    "drain_8p_vs_best": None,
    "drain_16p_vs_best": Target(1.1),
    "submit_many_vs_best": Target(1.5),
    "backlog_vs_best": Target(1.0),
    "backlog_1m_vs_10k": Target(0.95),
    "held_vs_best": Target(1.1),
    "start_p50_vs_best_pg": Target(1.0, is_ceiling=True),
    "start_p99_vs_best_pg": Target(1.0, is_ceiling=True),
    "start_p50_ms": None,
    "commit_ms": None,
    "cpu_vs_graphile": Target(0.9, is_ceiling=True),
    "cpu_vs_best_python": Target(1.0, is_ceiling=True),
    "transactions_per_job": Target(0.02, is_ceiling=True),
    "idle_statements_per_s": Target(1.0, is_ceiling=True),
    "idle_worker_mb": Target(80, is_ceiling=True),
}


def compare(results: Results) -> dict[str, float]:
    """All figures that the samples allow."""
    figures: dict[str, float] = {}

    def put(name: str, of: float | None, to: float | None = 1.0) -> None:
        if of is not None and to:
            figures[name] = of / to

    def best(
        workload: str, value: str, pick: Callable[[Iterable[float]], float], **wanted: object
    ) -> float | None:
        found = [
            number
            for name, system in results.systems.items()
            if not name.startswith(OURS)
            and all(system[key] == expected for key, expected in wanted.items())
            and (number := results.median(workload, name, value)) is not None
        ]
        return pick(found) if found else None

    def ours(workload: str, value: str = "rate") -> float | None:
        return results.median(workload, OURS, value)

    for count in (1, 2, 8, 16):
        name = f"drain_{count}p"
        put(f"{name}_vs_best", ours(name), best(name, "rate", max))
    for name in ("drain_1p", "drain_2p"):
        put(f"{name}_vs_best_python", ours(name), best(name, "rate", max, is_python=True))
    for name in ("submit_many", "backlog", "held"):
        put(f"{name}_vs_best", ours(name), best(name, "rate", max))
    put("backlog_1m_vs_10k", ours("backlog"), ours("backlog_small"))
    for value in ("p50", "p99"):
        least = best("start", f"{value}_ms", min, broker="postgres")
        put(f"start_{value}_vs_best_pg", ours("start", f"{value}_ms"), least)
    put("start_p50_ms", ours("start", "p50_ms"))
    put("commit_ms", results.commit_ms)
    put(
        "cpu_vs_graphile",
        ours("drain_1p", "cpu_us"),
        results.median("drain_1p", GRAPHILE, "cpu_us"),
    )
    least = best("drain_1p", "cpu_us", min, is_python=True)
    put("cpu_vs_best_python", ours("drain_1p", "cpu_us"), least)
    put("transactions_per_job", ours("idle", "transactions"))
    put("idle_statements_per_s", ours("idle", "statements_per_s"))
    put("idle_worker_mb", ours("idle", "resident_mb"))
    return figures
