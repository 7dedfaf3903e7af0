"""`laneway doctor`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from laneway.cli import connection
from laneway.cli.exits import ExitCode
from laneway.cli.inputs import Json
from laneway.cli.output import line, show_json, visible

if TYPE_CHECKING:
    from laneway.config.settings import Settings
    from laneway.control.health_check import HealthCheck

MARKS = {"ok": "✔", "warn": "!", "fail": "✘"}


def doctor(json: Json = False) -> None:
    """Check the database, workers and jobs, or a server; name the next step for each problem."""
    import asyncio

    found = asyncio.run(_check_server(json) if connection.is_remote() else _check_all(json))
    failed = {check.name for check in found if check.finding.value == "fail"}
    if failed & {"database", "server"}:
        raise typer.Exit(ExitCode.UNREACHABLE)
    raise typer.Exit(ExitCode.FAILED if failed else ExitCode.OK)


async def _check_server(json: bool) -> list[HealthCheck]:
    from laneway.cli.server_doctor import examine_server

    found: list[HealthCheck] = []
    async for check in examine_server():
        found.append(check)
        _show(check, json, is_repeated=False)
    return found


async def _check_all(json: bool) -> list[HealthCheck]:
    from laneway.app.open_database import open_database
    from laneway.control.health import examine
    from laneway.control.health_check import Finding, HealthCheck
    from laneway.errors import LanewayError, MissingExtra
    from laneway.extras import install_line

    chosen = connection.settings()
    found: list[HealthCheck] = []

    def add(check: HealthCheck) -> None:
        is_repeated = check.next is not None and check.next in {each.next for each in found}
        found.append(check)
        _show(check, json, is_repeated=is_repeated)

    try:
        async with open_database(chosen, role="doctor", announce=False) as db:
            async for check in examine(db):
                add(check)
    except MissingExtra as error:
        # The rest of its message is the next step.
        message, _, _ = str(error).partition(": ")
        step = f"{install_line('embedded')}, or set LANEWAY_DATABASE_URL or LANEWAY_PG_BIN"
        add(HealthCheck("database", Finding.FAIL, message, step))
        return found
    except LanewayError as error:
        step = "see the line above" if found else "set LANEWAY_DATABASE_URL"
        name = "checks" if found else "database"
        add(HealthCheck(name, Finding.FAIL, str(error), step))
    if chosen.conninfo is None:
        add(_embedded(chosen))
    return found


def _embedded(chosen: Settings) -> HealthCheck:
    from laneway.control.health_check import Finding, HealthCheck
    from laneway.embedded.binaries import find_binaries
    from laneway.errors import ConfigError

    try:
        programs = find_binaries(chosen.pg_bin)
    except ConfigError as error:
        step = "set LANEWAY_DATABASE_URL or LANEWAY_PG_BIN"
        return HealthCheck("embedded", Finding.FAIL, str(error), step)
    return HealthCheck(
        "embedded", Finding.OK, f"PostgreSQL {programs.version} in {programs.directory}"
    )


def _show(check: HealthCheck, json: bool, *, is_repeated: bool) -> None:
    if json:
        show_json(check.to_dict())
        return
    line(f"{MARKS[check.finding.value]} {check.name:13} {visible(check.message)}")
    if is_repeated:
        line(f"  {'':13} next: as above")
    elif check.next:
        line(f"  {'':13} next: {visible(check.next)}")
