"""All commands by name; each is imported when it is used, so that `laneway --help` is quick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any, Final, NamedTuple

import typer
from typer.main import get_command


class LazyCommand(NamedTuple):
    """A command or a group: its module in laneway.cli, its name there, its line in the help."""

    module: str
    name: str
    summary: str


# In the order in which users meet them.
COMMANDS: Final[Mapping[str, LazyCommand]] = {
    "demo": LazyCommand(
        "worker", "demo", "Run a demo: embedded PostgreSQL, workers, sample jobs and the dashboard."
    ),
    "up": LazyCommand(
        "server", "up", "Serve the HTTP API and run jobs with the handlers of APP, in one process."
    ),
    "server": LazyCommand(
        "server", "server", "Serve the HTTP API until stopped by SIGTERM, SIGHUP or Ctrl-C."
    ),
    "worker": LazyCommand(
        "worker",
        "worker",
        "Run jobs with the handlers of APP until stopped by SIGTERM, SIGHUP or Ctrl-C.",
    ),
    "remote-worker": LazyCommand(
        "remote_worker",
        "remote_worker",
        "Run jobs of a server with the handlers of APP, without database access, until stopped.",
    ),
    "jobs": LazyCommand("jobs", "app", "Submit, inspect and control jobs."),
    "flows": LazyCommand(
        "flows", "app", "Show and control flows: jobs that were submitted together."
    ),
    "events": LazyCommand("events", "app", "Send events to waiting jobs."),
    "lanes": LazyCommand("lanes", "app", "Show and change lanes while jobs run."),
    "limits": LazyCommand("limits", "app", "Show and change limits while jobs run."),
    "schedules": LazyCommand(
        "schedules", "app", "Show and change schedules, which submit jobs on a cron."
    ),
    "webhooks": LazyCommand(
        "webhooks", "app", "Show and change webhooks: URLs that are sent the ends of jobs."
    ),
    "pause": LazyCommand(
        "lanes", "pause", "Stop claiming in all lanes (close the pause gate); running jobs finish."
    ),
    "resume": LazyCommand(
        "lanes",
        "resume",
        "Claim in all lanes again (open the pause gate); drained lanes stay drained.",
    ),
    "freeze": LazyCommand(
        "freeze", "freeze", "Drain lanes, by default all, and wait until no job runs in them."
    ),
    "thaw": LazyCommand(
        "freeze", "thaw", "Restore frozen lanes, by default all, to their state before the freeze."
    ),
    "admin": LazyCommand("workers", "admin", "Commands for operators."),
    "top": LazyCommand(
        "top", "top", "Watch lanes, slots, jobs and workers live, and act on the selected job."
    ),
    "audit": LazyCommand(
        "audit", "audit", "Show who changed what, and through which interface, newest first."
    ),
    "principals": LazyCommand(
        "principals", "app", "Manage the people and services that use the server."
    ),
    "roles": LazyCommand("roles", "app", "Manage roles and who has them."),
    "tokens": LazyCommand("tokens", "app", "Create and revoke tokens."),
    "mcp": LazyCommand("mcp", "mcp", "Serve MCP over stdin and stdout; read-only unless --write."),
    "db": LazyCommand("db", "app", "Manage the schema, its grants and the database."),
    "doctor": LazyCommand(
        "doctor",
        "doctor",
        "Check the database, workers and jobs, or a server; name the next step for each problem.",
    ),
    "deploy": LazyCommand(
        "deploy",
        "app",
        "Print or copy dashboards, alert rules, a Helm chart, container and systemd files.",
    ),
    "bench": LazyCommand(
        "bench",
        "bench",
        "Measure Laneway in your database for a minute, and say what limits the rate.",
    ),
}


class LazyCommands(MutableMapping[str, Any]):
    """The commands of a group by name; reading one imports and builds it."""

    def __init__(self, commands: Mapping[str, LazyCommand]) -> None:
        self._lazy = commands
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = _build(name, self._lazy[name])
        return self._built[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._built[name] = command

    def __delitem__(self, name: str) -> None:
        del self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._lazy, *self._built]))

    def __len__(self) -> int:
        return len({*self._lazy, *self._built})


def _build(name: str, lazy: LazyCommand) -> Any:
    found = getattr(import_module(f"laneway.cli.{lazy.module}"), lazy.name)
    if not isinstance(found, typer.Typer):
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name)(found)
        found = single
    command = get_command(found)
    command.name = name
    return command
