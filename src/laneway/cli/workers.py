"""`laneway admin workers …`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli import connection, lanes, stats
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.output import note, show, show_json, visible

if TYPE_CHECKING:
    from uuid import UUID

    from laneway.cli.connection import Backend
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

    _show_result(connection.run(verb), "drained", json)


@app.command()
def resume(worker: Worker, json: Json = False) -> None:
    """Let a drained worker claim again."""

    async def verb(backend: Backend) -> WorkerRow:
        return await backend.resume_worker(await _find_worker(backend, worker))

    _show_result(connection.run(verb), "resumed", json)


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


def _show_overview(json: bool) -> None:
    seen = connection.run(lambda backend: backend.overview())
    if json:
        show_json(seen.to_dict())
        return
    from laneway.cli import tables

    show(tables.overview(seen))
