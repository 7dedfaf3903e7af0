"""`laneway lanes …`, `laneway pause`, `laneway resume`"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli import history, inputs, session
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.output import note, show, show_json, show_json_lines, visible
from laneway.errors import LanewayError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laneway.cli.session import Desk
    from laneway.domain.change import Change
    from laneway.domain.lane import Lane

app = group("Look at lanes and tune them while they work.")

Name = Annotated[str, typer.Argument(metavar="LANE", help="The lane's name.")]
MaxSlots = Annotated[
    str | None,
    typer.Option(
        metavar="N", parser=inputs.slots, help="Jobs at once in the whole cluster; or `unbounded`."
    ),
]
PollInterval = Annotated[int | None, typer.Option(metavar="MS", help="100 to 120000.")]
StaleTimeout = Annotated[int | None, typer.Option(metavar="MINUTES", help="1 to 1440.")]
LeaseSeconds = Annotated[int | None, typer.Option(metavar="S", help="2 to 3600.")]
JobTypes = Annotated[
    str | None, typer.Option(metavar="A,B", help="All job types of the lane, separated by commas.")
]


def _change(
    max_slots: str | None,
    poll_interval_ms: int | None,
    stale_timeout_minutes: int | None,
    lease_seconds: int | None,
    job_types: str | None,
) -> dict[str, object]:
    given: dict[str, object] = {
        "poll_interval_ms": poll_interval_ms,
        "stale_timeout_minutes": stale_timeout_minutes,
        "lease_seconds": lease_seconds,
        "job_types": inputs.names(job_types) if job_types is not None else None,
    }
    change = {name: value for name, value in given.items() if value is not None}
    if max_slots is not None:
        change["max_slots"] = None if max_slots == "unbounded" else int(max_slots)
    return change


def _said(lane: Lane, done: str, json: bool) -> None:
    if json:
        show_json(lane.to_dict())
    else:
        note(f"lane {lane.name}: {done}")


@app.command()
def ls(json: Json = False) -> None:
    """List the lanes with slots in use, depth and oldest wait."""
    found = session.run(lambda desk: desk.lanes())
    if json:
        show_json_lines(each.to_dict() for each in found)
        return
    from laneway.cli import tables

    show(tables.lanes(found))


@app.command("show")
def show_(name: Name, json: Json = False) -> None:
    """Show one lane, and what waits in it by priority and job type."""
    found = session.run(lambda desk: desk.lane(name))
    if json:
        show_json(found.to_dict())
        return
    from laneway.cli import figure_tables, tables

    show(tables.lanes([found]))
    if found.by_priority:
        show(figure_tables.waiting(found.by_priority))


@app.command()
def create(
    lane: Name,
    max_slots: MaxSlots = None,
    poll_interval_ms: PollInterval = None,
    stale_timeout_minutes: StaleTimeout = None,
    lease_seconds: LeaseSeconds = None,
    job_types: JobTypes = None,
    json: Json = False,
) -> None:
    """Create a lane: 1 slot, a poll every 5 s and stale after 30 min unless said otherwise."""
    given = _change(max_slots, poll_interval_ms, stale_timeout_minutes, lease_seconds, job_types)
    made = session.run(lambda desk: desk.create_lane(lane, given))
    _said(made, "created", json)


@app.command("set")
def set_(
    lane: Name,
    max_slots: MaxSlots = None,
    poll_interval_ms: PollInterval = None,
    stale_timeout_minutes: StaleTimeout = None,
    lease_seconds: LeaseSeconds = None,
    job_types: JobTypes = None,
    json: Json = False,
) -> None:
    """Change a lane; in force within one poll interval, without a restart."""
    change = _change(max_slots, poll_interval_ms, stale_timeout_minutes, lease_seconds, job_types)
    changed, made = session.run(lambda desk: _tune(desk, lane, change))
    if made is None:
        _said(changed, "is so already", json)
        return
    from laneway.cli import tables

    _said(changed, tables.difference(made), json)


async def _tune(desk: Desk, name: str, change: Mapping[str, object]) -> tuple[Lane, Change | None]:
    """The lane, and the change as its history has it; None: there was nothing to change."""
    newest = 0
    # What is wrong with the name or the order is said by the verb itself.
    with suppress(LanewayError):
        before = await desk.history(["lane"], name, limit=1, before=None)
        newest = before[0].id if before else 0
    lane = await desk.tune_lane(name, change)
    since = await desk.history(["lane"], name, limit=20, before=None)
    ours = (each for each in since if each.id > newest and _holds(each, change))
    return lane, next(ours, None)


def _holds(made: Change, change: Mapping[str, object]) -> bool:
    return all((made.after or {}).get(name) == value for name, value in change.items())


@app.command()
def drain(lane: Name, json: Json = False) -> None:
    """Claim nothing new in a lane; what runs finishes."""
    _said(session.run(lambda desk: desk.tune_lane(lane, {"enabled": False})), "drains", json)


@app.command("resume")
def resume_lane(lane: Name, json: Json = False) -> None:
    """Claim jobs of a drained lane again."""
    _said(session.run(lambda desk: desk.tune_lane(lane, {"enabled": True})), "resumed", json)


@app.command()
def move(
    job_type: Annotated[str, typer.Argument(metavar="TYPE", help="The job type.")],
    lane: Name,
    json: Json = False,
) -> None:
    """Move a job type, with its waiting jobs, to another lane."""
    changed = session.run(lambda desk: desk.move_type(job_type, lane))
    _said(changed, f"takes {visible(job_type)}", json)


history.add_commands(app, "lane")


def pause() -> None:
    """Shut the pause gate: nothing is claimed anywhere; what runs finishes."""
    session.run(lambda desk: desk.pause())
    note("paused: nothing is claimed until `laneway resume`")


def resume() -> None:
    """Open the pause gate; drained lanes stay drained."""
    session.run(lambda desk: desk.resume())
    note("resumed")
