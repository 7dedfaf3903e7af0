"""The tree of commands, and the entry point."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from laneway.cli import connection, output, variables
from laneway.cli.commands import COMMANDS, LazyCommands
from laneway.cli.exits import ExitCode, log_as_json, report
from laneway.cli.groups import Group

# Commands that need a database and do not work through a server.
DATABASE_ONLY = frozenset({"demo", "up", "server", "worker", "db", "bench"})


class Root(Group):
    """The root group; it reports the errors of all commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = LazyCommands(COMMANDS)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _discard_output()
            raise typer.Exit(ExitCode.CLOSED_PIPE) from None
        except Exception as error:
            if type(error).__module__.startswith("typer"):
                raise
            raise typer.Exit(report(error)) from None


app = typer.Typer(
    name="laneway",
    cls=Root,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "auto_envvar_prefix": "LANEWAY",
    },
    epilog="Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 refused, 5 database or server "
    "unreachable, 130 interrupted, 141 the reader of its output has gone.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from laneway import __version__

        output.line(f"laneway {__version__}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    database_url: Annotated[
        str | None,
        typer.Option(
            metavar="DSN",
            envvar="LANEWAY_DATABASE_URL",
            help="PostgreSQL to use. Prefer the variable: others can read arguments.",
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL", envvar="LANEWAY_SERVER", help="Use this server instead of a database."
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            envvar="LANEWAY_TOKEN",
            help="Token for the server. Prefer the variable or LANEWAY_TOKEN_FILE: others can read "
            "arguments.",
        ),
    ] = None,
    allow_insecure: Annotated[
        bool,
        typer.Option("--allow-insecure", help="Send the token over plain HTTP to another host."),
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name recorded with changes; user@host by default. Not with --server.",
        ),
    ] = None,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colour (NO_COLOR).")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            allow_from_autoenv=False,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Durable background jobs on the PostgreSQL you already have."""
    output.use_color(not no_color)
    variables.use_root(ctx)
    log_as_json(False)
    connection.use_principal(by)
    connection.use_server(None)
    if server and ctx.invoked_subcommand == "remote-worker":
        if _is_typed(ctx, "server"):
            raise typer.BadParameter("write it after `remote-worker`, as HOST:PORT")
    elif server:
        _check_server_use(ctx)
        source = "--token" if _is_typed(ctx, "token") else "LANEWAY_TOKEN"
        connection.use_server(connection.Server(server, token, allow_insecure, source))
        return
    for name in ("token", "allow_insecure"):
        if _is_typed(ctx, name):
            option = f"--{name.replace('_', '-')}"
            raise typer.BadParameter(f"{option} needs --server (LANEWAY_SERVER)")
    if database_url:
        # Worker processes and the user's Laneway() read it from the environment.
        os.environ["LANEWAY_DATABASE_URL"] = database_url


def _check_server_use(ctx: typer.Context) -> None:
    """Refuse commands and options that do not work through a server."""
    if ctx.invoked_subcommand in DATABASE_ONLY:
        raise typer.BadParameter(
            f"`{ctx.invoked_subcommand}` needs a database: remove --server (LANEWAY_SERVER)"
        )
    for name, why in (
        ("database_url", "give --server or --database-url, not both"),
        ("by", "--by needs a database: a server uses the token's owner"),
    ):
        if _is_typed(ctx, name):
            raise typer.BadParameter(why)


def _is_typed(ctx: typer.Context, name: str) -> bool:
    """Whether the option was given on the command line, not in the environment."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def main() -> None:
    """Run the command line and exit."""
    # Applications may import gRPC, which reads this before laneway.rpc can set it.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    try:
        app(prog_name="laneway")
    except KeyboardInterrupt:
        # Before a command started; Typer handles later ones.
        sys.exit(ExitCode.INTERRUPTED)
    finally:
        _flush()


def _flush() -> None:
    # A closed pipe must not cause a traceback at exit.
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()


def _discard_output() -> None:
    """Send what is still buffered, and all that follows, nowhere: its reader is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
