"""`laneway lanes …`, `laneway pause`, `laneway resume`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli import history, inputs, session
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.output import note, show, show_json, show_json_lines, visible
from laneway.errors import LanewayError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laneway.cli.session import Backend
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
    found = session.run(lambda backend: backend.lanes())
    if json:
        show_json_lines(each.to_dict() for each in found)
        return
    from laneway.cli import tables

    show(tables.lanes(found))


@app.command("show")
def show_(name: Name, json: Json = False) -> None:
    """Show one lane, and what waits in it by priority and job type."""
    found = session.run(lambda backend: backend.lane(name))
    if json:
        show_json(found.to_dict())
        return
    from laneway.cli import stats_tables, tables

    show(tables.lanes([found]))
    if found.by_priority:
        show(stats_tables.waiting(found.by_priority))


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
    made = session.run(lambda backend: backend.create_lane(lane, given))
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
    changed, done = session.run(lambda backend: _tune(backend, lane, change))
    _said(changed, done, json)


async def _tune(backend: Backend, name: str, change: Mapping[str, object]) -> tuple[Lane, str]:
    """The lane, and what was made of it as far as its history tells."""
    before = await _changes(backend, name, limit=1)
    lane = await backend.tune_lane(name, change)
    since = await _changes(backend, name, limit=20)
    if before is None or since is None:
        return lane, f"set {', '.join(sorted(change))}"
    newest = before[0].id if before else 0
    told = lane.to_dict()
    for each in since:
        if each.id > newest and all((each.after or {}).get(n) == told[n] for n in change):
            from laneway.cli import tables

            return lane, tables.difference(each)
    return lane, "is so already"


async def _changes(backend: Backend, name: str, *, limit: int) -> list[Change] | None:
    """None where they are not told: the verb says what is wrong, and what it did stands."""
    try:
        return await backend.history(["lane"], name, limit=limit, before=None)
    except LanewayError:
        return None


@app.command()
def drain(lane: Name, json: Json = False) -> None:
    """Claim nothing new in a lane; what runs finishes."""
    _said(session.run(lambda backend: backend.tune_lane(lane, {"enabled": False})), "drains", json)


@app.command("resume")
def resume_lane(lane: Name, json: Json = False) -> None:
    """Claim jobs of a drained lane again."""
    _said(session.run(lambda backend: backend.tune_lane(lane, {"enabled": True})), "resumed", json)


@app.command()
def move(
    job_type: Annotated[str, typer.Argument(metavar="TYPE", help="The job type.")],
    lane: Name,
    json: Json = False,
) -> None:
    """Move a job type, with its waiting jobs, to another lane."""
    changed = session.run(lambda backend: backend.move_type(job_type, lane))
    _said(changed, f"takes {visible(job_type)}", json)


history.add_commands(app, "lane")


def pause() -> None:
    """Shut the pause gate: nothing is claimed anywhere; what runs finishes."""
    session.run(lambda backend: backend.pause())
    note("paused: nothing is claimed until `laneway resume`")


def resume() -> None:
    """Open the pause gate; drained lanes stay drained."""
    session.run(lambda backend: backend.resume())
    note("resumed")
