"""`laneway lanes …`, `laneway pause`, `laneway resume`"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from laneway.cli import completion, connection, history
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.name_notes import note_unpublished_types
from laneway.cli.output import line, note, show, show_json, show_json_lines, visible
from laneway.cli.setting_options import takes_settings
from laneway.domain.lane import Lane, LaneSettings, TunedLane
from laneway.operations import lanes as operations
from laneway.operations.workers import pause_claims, resume_claims

app = group("Show and change lanes while jobs run.")

Name = Annotated[
    str,
    typer.Argument(metavar="LANE", help="The lane's name.", autocompletion=completion.lanes),
]
JobType = Annotated[str, typer.Argument(metavar="TYPE", help="The job type.")]
with_settings = takes_settings(LaneSettings, without=("enabled",))


def _show_done(lane: Lane, done: str, json: bool) -> None:
    if json:
        show_json(lane)
    else:
        note(f"lane {lane.name}: {done}")


def _show_tuned(lane: TunedLane, done: str | None, json: bool) -> None:
    """Show the change; `done` is shorter than the difference where the command says it all."""
    from laneway.cli import tables

    change = lane.change
    _show_done(lane, "unchanged" if change is None else done or tables.difference(change), json)


@app.command()
def ls(json: Json = False) -> None:
    """List the lanes with slots in use, depth and oldest wait."""
    if json:
        found = connection.items(operations.list_lanes())
        show_json_lines(found)
        return
    from laneway.cli import tables

    seen = connection.run(lambda backend: backend.overview(1))
    if seen.gate.paused:
        show(tables.paused(seen.gate))
    show(tables.lanes(seen.lanes))


@app.command("show")
def show_(name: Name, json: Json = False) -> None:
    """Show one lane, and what waits in it by priority and job type."""
    found = connection.call(operations.get_lane(name))
    if json:
        show_json(found)
        return
    from laneway.cli import stats_tables, tables

    show(tables.lanes([found]))
    if found.by_priority:
        show(stats_tables.waiting(found.by_priority))


@app.command()
@with_settings
def create(lane: Name, settings: LaneSettings, json: Json = False) -> None:
    """Create a lane; by default 1 slot, a poll every 5 s, stale after 30 min."""
    _show_done(connection.call(operations.create_lane(lane, settings)), "created", json)


@app.command("set")
@with_settings
def set_(lane: Name, settings: LaneSettings, json: Json = False) -> None:
    """Change a lane; in force within one poll interval, without a restart."""
    _show_tuned(connection.call(operations.tune_lane(lane, settings)), None, json)


@app.command()
def load(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="TOML or JSON, `-` for stdin, or a preset: knowledge-graph, plain.",
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the changes without making them.")
    ] = False,
    json: Json = False,
) -> None:
    """Replace all lanes by those of a file or a preset, in one change."""
    from laneway.cli import tables
    from laneway.config.lanes import read_lanes
    from laneway.domain.lane_setup import table_of

    try:
        lanes = read_lanes(sys.stdin.read() if file == "-" else file)
    except ValueError as error:
        raise typer.BadParameter(f"{file}: {error}") from None
    if not lanes:
        raise typer.BadParameter(f"{file}: has no lanes")
    done = connection.call(operations.load_lanes(table_of(lanes), dry_run))
    if json:
        show_json(done)
        return
    for each in done.changes:
        line(f"lane {each.name}: {tables.setup_change(each)}")
    for move in done.moves:
        line(f"job type {visible(move.job_type)}: {move.old} → {move.new}")
    if not done.changes:
        note("unchanged")
    elif done.dry_run:
        note("dry run: nothing was changed")


@app.command()
def drain(lane: Name, json: Json = False) -> None:
    """Stop claiming jobs of a lane; running jobs finish."""
    _show_tuned(
        connection.call(operations.tune_lane(lane, {"enabled": False})),
        "drained; running jobs finish, no more are claimed",
        json,
    )


@app.command("resume")
def resume_lane(lane: Name, json: Json = False) -> None:
    """Claim jobs of a drained lane again."""
    _show_tuned(connection.call(operations.tune_lane(lane, {"enabled": True})), "resumed", json)


@app.command()
def move(job_type: JobType, lane: Name, json: Json = False) -> None:
    """Move a job type, with its waiting jobs, to another lane."""

    async def verb(backend: connection.Backend) -> Lane:
        changed = await backend.call(operations.take_type(lane, job_type))
        await note_unpublished_types(backend, [job_type])
        return changed

    _show_done(connection.run(verb), f"now takes {visible(job_type)}", json)


@app.command("of")
def of_(job_type: JobType, json: Json = False) -> None:
    """Print the name of the lane that takes a job type."""
    found = connection.call(operations.find_lane(job_type))
    show_json(found) if json else line(found.name)


history.add_commands(app, "lane", operations.list_lane_changes, operations.roll_back_lane)


def pause() -> None:
    """Stop claiming in all lanes (close the pause gate); running jobs finish."""
    connection.call(pause_claims())
    note("paused: nothing is claimed until `laneway resume`; running jobs finish")


def resume() -> None:
    """Claim in all lanes again (open the pause gate); drained lanes stay drained."""
    connection.call(resume_claims())
    note("resumed: jobs are claimed again, except in drained lanes")
