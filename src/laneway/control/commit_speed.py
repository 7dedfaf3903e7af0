"""The limits that the times of a round trip and of a commit set to the rate of jobs."""

from __future__ import annotations

from typing import Final

from laneway.store.health import CommitSpeed

# A network in one data centre, and a disk or a standby that keeps up with hundreds of commits.
SLOW_ROUND_TRIP_S: Final = 0.002
SLOW_COMMIT_S: Final = 0.005


def describe(speed: CommitSpeed) -> str:
    """One sentence: the times, and which of them limits the rate, if one does."""
    round_trip = f"a round trip takes {milliseconds(speed.round_trip)}"
    if speed.commit is None:
        return f"{round_trip}; {_by_network(speed)}"
    return f"{round_trip}, a commit {milliseconds(speed.commit)}; {_by_commits(speed)}"


def _by_network(speed: CommitSpeed) -> str:
    if speed.round_trip >= SLOW_ROUND_TRIP_S:
        return "the network limits the rate: run workers near the database, submit in batches"
    return "commits were not timed: the role may not call pg_logical_emit_message"


def _by_commits(speed: CommitSpeed) -> str:
    commit = speed.commit or 0.0
    disk = max(0.0, commit - speed.round_trip)
    if speed.round_trip >= SLOW_ROUND_TRIP_S and speed.round_trip >= disk:
        return "the network limits the rate: run workers near the database, submit in batches"
    if disk >= SLOW_COMMIT_S:
        return (
            "commits limit the rate: they wait for a disk or a standby;"
            f" single submits of one caller reach {1 / commit:,.0f}/s, so submit in batches"
        )
    return "neither is slow: `laneway bench` finds what limits the rate under load"


def milliseconds(seconds: float) -> str:
    """A short time with its unit: 0.08 ms, 1.4 ms, 25 ms."""
    value = seconds * 1000
    return (
        f"{value:.2f} ms" if value < 1 else f"{value:.1f} ms" if value < 10 else f"{value:.0f} ms"
    )
