"""`laneway admin workers …` and `laneway top`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli import inputs, lanes, output, session, stats
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.output import note, show, show_json, visible

if TYPE_CHECKING:
    from uuid import UUID

    from laneway.cli.session import Backend
    from laneway.domain.overview import WorkerRow

admin = group("Commands for operators.")
app = group("Slots, lanes, active jobs and live workers.")
admin.add_typer(app, name="workers")

Worker = Annotated[str, typer.Argument(metavar="WORKER", help="The worker's name or full id.")]


@app.callback(invoke_without_command=True, no_args_is_help=False)
def workers(ctx: typer.Context, json: Json = False) -> None:
    """Show slots, lanes, active jobs and live workers."""
    if ctx.invoked_subcommand is None:
        _show_overview(json)


@app.command("lanes")
def lanes_(json: Json = False) -> None:
    """List lanes with configuration, utilization, depth and oldest wait."""
    lanes.ls(json)


app.command()(stats.types)
app.command()(stats.publishers)
app.command()(stats.forget_publisher)
admin.command()(stats.failures)


@app.command()
def drain(worker: Worker, json: Json = False) -> None:
    """Stop one worker from claiming until it is resumed; its running jobs finish."""

    async def verb(backend: Backend) -> WorkerRow:
        return await backend.drain_worker(await _find_worker(backend, worker))

    _show_result(session.run(verb), "drained", json)


@app.command()
def resume(worker: Worker, json: Json = False) -> None:
    """Let a drained worker claim again."""

    async def verb(backend: Backend) -> WorkerRow:
        return await backend.resume_worker(await _find_worker(backend, worker))

    _show_result(session.run(verb), "resumed", json)


async def _find_worker(backend: Backend, worker: str) -> UUID:
    """The id itself, or the id of the live worker with this name."""
    from uuid import UUID

    from laneway.domain.missing import hint
    from laneway.errors import NotFound, Refused

    try:
        return UUID(worker)
    except ValueError:
        seen = await backend.overview(1)
    found = [each.id for each in seen.live if each.name == worker]
    if not found:
        names = [each.name for each in seen.live]
        raise NotFound(f"no live worker {visible(worker)}; {hint('worker', worker, names)}")
    if len(found) > 1:
        ids = ", ".join(map(str, found))
        raise Refused(
            f"{len(found)} live workers are named {visible(worker)}: use one of the ids {ids}"
        )
    return found[0]


def _show_result(worker: WorkerRow, done: str, json: bool) -> None:
    if json:
        show_json(worker)
        return
    running = f", {worker.running} running" if worker.running else ""
    note(f"worker {visible(worker.name)}: {done}{running}")


def top(
    interval: Annotated[
        float,
        typer.Option(
            metavar="DURATION", parser=inputs.duration, help="Time between two refreshes."
        ),
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and exit.")] = False,
    json: Json = False,
) -> None:
    """Watch lanes, slots, active jobs and workers live."""
    if once or json or not output.is_terminal():
        _show_overview(json)
        return
    session.run(lambda backend: _keep_showing(backend, max(interval, 0.1)))


def _show_overview(json: bool) -> None:
    seen = session.run(lambda backend: backend.overview())
    if json:
        show_json(seen.to_dict())
        return
    from laneway.cli import tables

    show(tables.overview(seen))


async def _keep_showing(backend: Backend, interval: float) -> None:
    import asyncio

    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from laneway.cli import tables
    from laneway.errors import DatabaseUnavailable, ServerUnreachable, UnsuitableDatabase

    screen = output.console()
    with Live(console=screen, screen=True, auto_refresh=False) as live:
        while True:
            try:
                seen = await backend.overview(screen.height)
                foot = f"every {output.seconds(interval)} · Ctrl-C ends"
                live.update(Group(tables.overview(seen), Text(f"\n{foot}", "dim")), refresh=True)
            except UnsuitableDatabase:
                raise
            except DatabaseUnavailable as error:
                live.update(Text(f"database unavailable: {error}", "red"), refresh=True)
            except ServerUnreachable as error:
                live.update(Text(str(error), "red"), refresh=True)
            await asyncio.sleep(interval)
