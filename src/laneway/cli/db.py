"""`laneway db …`"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from laneway import __version__
from laneway.cli import connection
from laneway.cli.exits import ExitCode, fail
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.output import line, note, show_json

if TYPE_CHECKING:
    from laneway.config.settings import Settings

app = group("Manage the schema, its grants and the database.")


def _dsn() -> str:
    from laneway.app.open_database import resolve_dsn
    from laneway.store.health import check_conninfo

    dsn = resolve_dsn(connection.settings(), announce=False)
    check_conninfo(dsn)
    return dsn


@app.command()
def migrate() -> None:
    """Apply pending migrations; safe to run from several machines at once."""
    from laneway.config.lanes import whole_setup
    from laneway.store import migrate as migrations

    applied = migrations.migrate(_dsn(), lanes=whole_setup(connection.settings().lanes))
    for name in applied:
        line(name)
    note(f"{len(applied)} applied" if applied else "the schema is up to date")


@app.command()
def status(
    json: Json = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Exit with 1 if a migration is pending or changed, or a table is missing.",
        ),
    ] = False,
) -> None:
    """Show applied, pending and unknown migrations, and the embedded data directory."""
    from dataclasses import asdict

    from laneway.store import migrate as migrations
    from laneway.store.missing_relations import CURE_RESTORE

    chosen = connection.settings()
    state = asdict(migrations.status(_dsn()))
    data_dir = str(_embedded_dir(chosen)) if chosen.conninfo is None else None
    if json:
        show_json({**state, "data_dir": data_dir})
    else:
        if data_dir is not None:
            line(f"embedded {data_dir}")
        for kind, found in state.items():
            for name in found:
                line(f"{kind:8} {name}")
        if state["pending"]:
            note("next: laneway db migrate")
        elif not state["changed"] and not state["missing"]:
            newest = [name for name in state["applied"] if name[0].isdigit()][-1]
            note(f"laneway {__version__}: the schema is up to date at {newest}")
        if state["missing"]:
            note(CURE_RESTORE)
    if check and (state["pending"] or state["changed"] or state["missing"]):
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def repair(json: Json = False) -> None:
    """Repair counters, lost jobs and waits, after a manual change of Laneway's tables."""
    import asyncio

    from laneway.app.open_database import open_database
    from laneway.control import repair

    def report(checked: int) -> None:
        if checked % 100_000 == 0:
            note(f"checked {checked:,} jobs")

    async def run() -> repair.Repaired:
        async with open_database(connection.settings(), role="repair", announce=False) as db:
            return await repair.repair(db, by=connection.principal(), on_progress=report)

    done = asyncio.run(run())
    if json:
        show_json(done._asdict())
        return
    line(f"repaired counters: {done.counters}")
    line(f"jobs without a state, now failed: {done.jobs}")
    line(f"repaired waiting jobs: {done.waits}")


@app.command()
def sql(
    first: Annotated[int, typer.Option("--from", min=1, help="First migration.")] = 1,
    last: Annotated[int | None, typer.Option("--to", min=1, help="Last migration.")] = None,
) -> None:
    """Print the SQL that `db migrate` would run, to apply it with other tools."""
    from laneway.store import migrate as migrations
    from laneway.store.migration_files import migrations as listed

    newest = listed()[-1].number
    if first > newest:
        raise typer.BadParameter(f"--from {first}: the newest migration is {newest}")
    if last is not None and last < first:
        raise typer.BadParameter(f"--to {last} is before --from {first}")
    line(migrations.script(first, last).rstrip())


@app.command()
def grants(
    role: Annotated[
        list[str],
        typer.Option(
            help="owner, migrator, server, worker, handler, approver, client or reader; repeatable."
        ),
    ],
    to: Annotated[
        str, typer.Option(metavar="NAME", help="The database role that receives the grants.")
    ],
    owner: Annotated[
        str, typer.Option(metavar="NAME", help="The role that owns the schema, for migrator.")
    ] = "laneway_owner",
    apply: Annotated[
        bool, typer.Option("--apply", help="Run the SQL on the database; psql is not needed.")
    ] = False,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Revoke nothing: programs of an earlier version still run."),
    ] = False,
) -> None:
    """Print the SQL that grants a database role exactly what it needs, or run it."""
    if apply:
        from laneway.store.apply_grants import apply_grants

        apply_grants(_dsn(), role, to, owner, keep=keep)
        note(f"{to}: has the rights of {', '.join(role)}")
        return
    from laneway.store.grants import grants_script

    line(grants_script(role, to, owner, keep=keep).rstrip())


@app.command(context_settings={"ignore_unknown_options": True})
def psql(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGS…", help="Options of psql, such as -c SQL."),
    ] = None,
) -> None:
    """Open psql on the database; a script on stdin stops at its first error."""
    program = shutil.which("psql") or shutil.which("psql", path=_embedded_programs() or os.devnull)
    if program is None:
        raise fail(
            "psql was not found: install the PostgreSQL client, or set LANEWAY_PG_BIN",
            ExitCode.FAILED,
        )
    stop = [] if os.isatty(0) else ["--set=ON_ERROR_STOP=1"]
    _run([program, *stop, *(arguments or [])])


@app.command("run")
def run_program(
    command: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM [ARGS…]", help="pg_dump, for example.")
    ],
) -> None:
    """Run a PostgreSQL program, such as pg_dump, on the database; it gets the password too."""
    installed = os.environ.get("PATH", os.defpath)
    path = installed
    # An older pg_dump refuses a newer server: embedded PostgreSQL needs its own programs.
    if connection.settings().conninfo is None or shutil.which(command[0]) is None:
        path = os.pathsep.join(filter(None, (_embedded_programs(), installed)))
    program = shutil.which(command[0], path=path)
    if program is None:
        raise fail(
            f"{command[0]} was not found: install the PostgreSQL client, or set LANEWAY_PG_BIN",
            ExitCode.FAILED,
        )
    _run([program, *command[1:]], PATH=path)


@app.command()
def reset(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete all data of embedded PostgreSQL and start again with an empty database."""
    from laneway.app.open_database import embedded_server
    from laneway.cli.filter_options import confirm
    from laneway.config.lanes import whole_setup
    from laneway.store import migrate as migrations

    chosen = connection.settings()
    if chosen.conninfo is not None:
        raise fail(
            "db reset deletes only embedded PostgreSQL, and a database is set"
            " (LANEWAY_DATABASE_URL, DATABASE_URL, PGHOST or laneway.toml)",
            ExitCode.REFUSED,
        )
    if chosen.embedded == "off":
        raise fail("embedded PostgreSQL is off (LANEWAY_EMBEDDED)", ExitCode.REFUSED)
    server = embedded_server(chosen)
    in_use = ", which other processes use" if server.is_running else ""
    confirm(f"Delete all jobs in {server.data_dir}{in_use}?", yes=yes)
    migrations.migrate(server.reset(), lanes=whole_setup(chosen.lanes))
    note(f"{server.data_dir} is empty")


@app.command()
def path() -> None:
    """Print the data directory of embedded PostgreSQL."""
    line(str(_embedded_dir(connection.settings())))


def _embedded_dir(chosen: Settings) -> Path:
    from laneway.app.open_database import embedded_server

    return embedded_server(chosen).data_dir


def _embedded_programs() -> str:
    """The directory of the PostgreSQL programs to embed; empty if there are none."""
    from laneway.embedded.binaries import find_binaries
    from laneway.errors import ConfigError

    try:
        return str(find_binaries(connection.settings().pg_bin).directory)
    except ConfigError:
        return ""


def _run(command: list[str], **variables: str) -> None:
    """Run a program with libpq's variables for the database, and exit with its code."""
    from laneway.store.health import libpq_environment

    environment = {**os.environ, **libpq_environment(_dsn()), **variables}
    if connection.settings().conninfo is not None:
        os.execve(command[0], command, environment)  # noqa: S606 - no shell is wanted
    # An embedded server ends with the process that started it: stay and wait for the program.
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = subprocess.run(command, env=environment, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, previous)
    raise typer.Exit(code)
