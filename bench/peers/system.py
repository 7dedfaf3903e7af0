"""A job system as the benchmark sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".cache" / "bench-peers"

Language = Literal["Python", "Node.js", "Rust and Python"]
Broker = Literal["postgres", "redis"]
Command = list[str]


class CannotInstall(Exception):
    """A system is left out; the text says why."""


class Environment(Protocol):
    """The place where a system's packages are."""

    def install(self) -> None:
        """Install the packages if they are missing; raise CannotInstall."""

    def command(self, program: Path, arguments: list[str]) -> Command:
        """The command that runs a program there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A system in one configuration.

    `settled` is a query that returns whether no job waits or runs; for Redis, keys that must be
    empty. `pace` is a rough guess of its jobs per second and bounds the length of a run.
    """

    name: str
    language: Language
    broker: Broker
    environment: Environment
    program: Path
    settings: str
    gives_up: str
    settled: str
    pace: int
    # The variables that choose this configuration in the program.
    variables: dict[str, str] = field(default_factory=dict)
    # Replaces `program work`.
    work: Command | None = None
    # The name of the workload and the reason.
    cannot: dict[str, str] = field(default_factory=dict)
    # Multiplies waiting jobs; `{n}` is how many copies of each are needed.
    multiply: str | None = None
    # Systems with the same tables share a database template.
    schema: str = ""

    @property
    def is_ours(self) -> bool:
        return self.name.startswith("laneway")

    @property
    def is_python(self) -> bool:
        return self.language != "Node.js"

    def run(self, *arguments: str) -> Command:
        return self.environment.command(self.program, list(arguments))

    def work_command(self) -> Command:
        return self.work or self.run("work")
