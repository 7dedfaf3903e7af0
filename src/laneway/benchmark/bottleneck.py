"""The sentence about what limits the rate, from the load during a drain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from laneway.benchmark.load import Work
from laneway.control.commit_speed import milliseconds
from laneway.store.health import CommitSpeed

FULL_MACHINE: Final = 0.95
SMALL_BUFFERS: Final = 128 * 1024**2 // 8192
SMALL_WAL_MB: Final = 256
# The settings that `notes` reads, in the units of pg_settings.
SETTINGS: Final = ("synchronous_commit", "fsync", "shared_buffers", "max_wal_size")
Pooling = Literal["transaction", "session"] | None


@dataclass(frozen=True, slots=True)
class Load:
    """The load while one worker process drained jobs; shares are between 0 and 1."""

    worker_cores: float
    database_cores: float
    # Of the connection of the worker that was active most.
    connection: Mapping[Work, float]
    # None: unknown, or the database is on another machine.
    machine: float | None
    processors: int

    @property
    def waiting(self) -> float:
        """The share in which neither the worker nor its busiest connection had work."""
        return max(0.0, 1.0 - max(self.worker_cores, sum(self.connection.values())))


def limit_of(load: Load, speed: CommitSpeed, pooling: Pooling) -> str:
    """One sentence: what limits the rate, how much, and what to do."""
    if load.machine is not None and load.machine >= FULL_MACHINE:
        ours = load.worker_cores + load.database_cores
        who = "Other programs" if ours < load.processors / 2 else "The processors of this machine"
        return (
            f"{who} limit the rate: all {load.processors} processors are"
            f" {load.machine:.0%} busy, the worker uses {load.worker_cores:.1f} of them and the"
            f" database {load.database_cores:.1f}."
        )
    shares: dict[str, float] = {
        **{str(work): share for work, share in load.connection.items()},
        "worker": load.worker_cores,
        "round trips": load.waiting,
    }
    found = max(shares, key=lambda name: shares[name])
    share = f"{min(shares[found], 1.0):.0%}"
    commit = milliseconds(speed.commit) if speed.commit is not None else "an unknown time"
    match found:
        case "worker":
            return (
                f"The CPU of the worker limits the rate: one process uses {share} of a core;"
                " `laneway worker --processes N` starts more."
            )
        case "cpu":
            return (
                f"The CPU of the database limits the rate: one session computes {share} of the"
                " time."
            )
        case "commit":
            return (
                f"The disk of the database limits the rate: a session waits for commits {share} of"
                f" the time, and one commit takes {commit}."
            )
        case "standby":
            return (
                f"A synchronous standby limits the rate: a session waits for it {share} of the"
                f" time, and one commit takes {commit}."
            )
        case "lock":
            return (
                f"Locks limit the rate: a session waits for others {share} of the time;"
                " `laneway doctor` names sessions that block Laneway."
            )
        case "read":
            return (
                f"Reads from disk limit the rate: a session waits for them {share} of the time;"
                " a larger shared_buffers keeps the tables in memory."
            )
        case "other":
            return f"The database limits the rate: a session waits in it {share} of the time."
    through = " through the pooler" if pooling else ""
    return (
        f"Round trips to the database limit the rate: each takes"
        f" {milliseconds(speed.round_trip)}{through}, and {share} of the time neither the worker"
        " nor the database has work; run the worker nearer to the database, or more processes."
    )


def notes(settings: Mapping[str, str], pooling: Pooling) -> list[str]:
    """Sentences about settings that change the figures, and about a pooler."""
    found = [
        f"{name} is off: commits do not wait for the disk, and a crash of the server may lose"
        " acknowledged jobs."
        for name in ("synchronous_commit", "fsync")
        if settings.get(name) == "off"
    ]
    buffers = int(settings.get("shared_buffers", SMALL_BUFFERS))
    if buffers < SMALL_BUFFERS:
        size = buffers * 8192 // 1024**2
        found.append(f"shared_buffers is {size} MB: large queues are read from disk.")
    wal = int(settings.get("max_wal_size", SMALL_WAL_MB))
    if wal < SMALL_WAL_MB:
        found.append(f"max_wal_size is {wal} MB: frequent checkpoints slow down writes.")
    if pooling == "transaction":
        found.append(
            "A transaction pooler is in between: statements are not prepared, and workers poll"
            " instead of listening (LANEWAY_LISTEN_DSN bypasses it)."
        )
    return found
