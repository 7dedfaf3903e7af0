"""The scenarios of scenarios.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from laneway.client import JobOptions

FILE = Path(__file__).with_name("scenarios.toml")
KINDS = ("in-process", "python-remote", "typescript")
# Acts that need a separate worker or servers, because they would disturb other scenarios.
_OWN_WORKER = re.compile(r"(kill|stop|pause|start) worker|cut|.* server")
_OWN_LANE = re.compile(r"lane .*")
_OWN_SERVER = re.compile(r"(kill|stop) server")


@dataclass(frozen=True, kw_only=True)
class PlannedJob:
    """A job to submit, and its expected final state."""

    handler: str
    payload: dict[str, Any] = field(default_factory=dict)
    options: JobOptions = field(default_factory=JobOptions)
    # The numbers of the jobs that it comes after, which are submitted before it.
    after: tuple[int, ...] = ()
    # "sql": through the SQL function laneway.submit, which does not check arguments.
    by: str = "client"
    count: int = 1
    see: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Jobs, the acts while they run, and the expected result."""

    name: str
    law: str
    jobs: tuple[PlannedJob, ...]
    acts: tuple[str, ...] = ()
    # The expected final state of every job.
    see: dict[str, Any] = field(default_factory=dict)
    # Word → the expected number of lines in the handlers' log.
    lines: dict[str, int] = field(default_factory=dict)
    # The tags of the jobs in the expected order of their starts.
    order: tuple[str, ...] = ()
    # Between these two words of one job the log has none of another job.
    alone: tuple[str, str] | None = None
    # The concurrency of a separate worker.
    in_flight: int | None = None
    grace_ms: int = 10_000
    lane: dict[str, Any] = field(default_factory=dict)
    servers: int = 1
    # Kind of worker → why the scenario does not apply.
    skip: dict[str, str] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        return re.sub(r"\W+", "-", self.name.lower()).strip("-")

    @property
    def has_own_worker(self) -> bool:
        return self.in_flight is not None or any(map(_OWN_WORKER.fullmatch, self.acts))

    @property
    def has_own_lane(self) -> bool:
        return self.has_own_worker or bool(self.lane) or any(map(_OWN_LANE.fullmatch, self.acts))

    @property
    def has_own_servers(self) -> bool:
        return self.servers > 1 or any(map(_OWN_SERVER.fullmatch, self.acts))

    @property
    def is_cut(self) -> bool:
        return "cut" in self.acts


def load(path: Path = FILE) -> list[Scenario]:
    """Load all scenarios and check their form."""
    made = [_scenario(one) for one in tomllib.loads(path.read_text("utf-8"))["scenario"]]
    slugs = [one.slug for one in made]
    assert len(set(slugs)) == len(slugs), "two scenarios have one name"
    return made


def _scenario(table: Mapping[str, Any]) -> Scenario:
    given = dict(table)
    jobs = tuple(
        PlannedJob(
            **{
                **job,
                "payload": expanded(job.get("payload", {})),
                "after": tuple(job.get("after", ())),
            }
        )
        for job in given.pop("jobs")
    )
    for name in ("acts", "order", "alone"):
        if name in given:
            given[name] = tuple(given[name])
    scenario = Scenario(jobs=jobs, **given)
    assert set(scenario.skip) <= set(KINDS), f"{scenario.name}: skip names an unknown kind"
    return scenario


def expanded(value: Any) -> Any:
    """Expand every {repeat = ["x", 3]}."""
    if isinstance(value, dict):
        if set(value) == {"repeat"}:
            text, times = value["repeat"]
            return text * times
        return {key: expanded(one) for key, one in value.items()}
    return [expanded(one) for one in value] if isinstance(value, list) else value
