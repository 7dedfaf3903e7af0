"""`laneway schedules …`"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli import connection, history, inputs
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.name_notes import note_unserved_type
from laneway.cli.output import line, moment, note, show, show_json, show_json_lines
from laneway.cli.setting_options import takes_settings
from laneway.domain.codec import json_time
from laneway.domain.schedule import RunNow, Schedule, ScheduleSettings
from laneway.errors import Forbidden
from laneway.operations import schedules as operations

if TYPE_CHECKING:
    from laneway.cli.connection import Backend

app = group("Show and change schedules, which submit jobs on a cron.")

Name = Annotated[str, typer.Argument(metavar="SCHEDULE", help="The schedule's name.")]


def _show(schedule: Schedule, done: str, json: bool) -> None:
    if json:
        show_json(schedule)
        return
    following = f", next at {moment(schedule.next_at)}" if schedule.next_at else ""
    note(f"schedule {schedule.name}: {done}{following}")


@app.command()
def ls(json: Json = False) -> None:
    """List schedules with their next run and the outcome of the last slot."""
    found = connection.items(operations.list_schedules())
    if json:
        show_json_lines(found)
        return
    from laneway.cli import schedule_tables

    show(schedule_tables.schedules(found))


@app.command("show")
def show_(schedule: Name, json: Json = False) -> None:
    """Show one schedule, its cron in words and its newest slots."""
    found = connection.call(operations.get_schedule(schedule))
    if json:
        show_json(found)
        return
    from laneway.cli import schedule_tables

    newest = connection.page(operations.list_slots(schedule), 5)
    show(schedule_tables.schedule(found))
    if newest:
        line("")
        show(schedule_tables.slots(newest))


@app.command("set")
@takes_settings(
    ScheduleSettings,
    without=("payload", "tags", "enabled"),
    names={"job_type": "type", "check_name": "check"},
)
def set_(
    schedule: Name,
    settings: ScheduleSettings,
    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="The jobs' payload; - reads stdin.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="All tags of its jobs; may be repeated; or `none`.")
    ] = None,
    json: Json = False,
) -> None:
    """Create a schedule (needs --type and --cron), or change the given settings."""
    if tag:
        settings["tags"] = [] if tag == [inputs.NONE] else tag
    if payload is not None:
        limits = connection.settings().payload_limits
        settings["payload"] = inputs.payload(payload, None, [], limits)  # type: ignore[typeddict-item]
    made = connection.run(lambda backend: backend.put_schedule(schedule, settings))
    _show(made, f"set {', '.join(sorted(settings))}", json)


@app.command()
def enable(schedule: Name, json: Json = False) -> None:
    """Enable a schedule from its next slot on, and clear an error that stopped it."""
    _show(connection.call(operations.change_schedule(schedule, {"enabled": True})), "enabled", json)


@app.command()
def disable(schedule: Name, json: Json = False) -> None:
    """Disable a schedule; slots until it is enabled are skipped, not caught up."""
    _show(
        connection.call(operations.change_schedule(schedule, {"enabled": False})), "disabled", json
    )


@app.command()
def delete(schedule: Name, json: Json = False) -> None:
    """Delete a schedule and its slots; its jobs stay, and `rollback` restores it."""
    connection.call(operations.delete_schedule(schedule))
    if json:
        show_json({"name": schedule, "deleted": True})
    else:
        note(f"schedule {schedule}: deleted")


@app.command()
def run(
    schedule: Name,
    check: Annotated[
        bool, typer.Option("--check", help="Only if its check passes; a worker runs the check.")
    ] = False,
    json: Json = False,
) -> None:
    """Run a schedule now, enabled or not, and print the id of its job."""

    async def verb(backend: Backend) -> RunNow:
        ran = await backend.call(operations.run_schedule(schedule, check=check))
        with suppress(Forbidden):
            found = await backend.call(operations.get_schedule(schedule))
            await note_unserved_type(backend, found.job_type)
        return ran

    ran = connection.run(verb)
    if json:
        job_id = str(ran.job_id) if ran.job_id else None
        show_json({"answer": ran.answer, "slot": json_time(ran.slot), "job_id": job_id})
    elif ran.job_id is not None:
        line(str(ran.job_id))
    else:
        note(
            f"schedule {schedule}: requested; a worker runs the check and submits if it passes; "
            f"see the outcome with `laneway schedules slots {schedule}`"
        )


@app.command()
def slots(
    schedule: Name,
    limit: Annotated[int, typer.Option(metavar="N", help="At most N slots, 1 to 200.")] = 50,
    before: Annotated[
        Any, typer.Option(metavar="TIME", parser=inputs.moment, help="Only slots before this time.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the slots of a schedule and their outcomes, newest first."""
    cursor = None if before is None else before.isoformat()
    found = connection.page(operations.list_slots(schedule), limit, cursor)
    if json:
        show_json_lines(found)
        return
    from laneway.cli import schedule_tables

    show(schedule_tables.slots(found))
    if len(found) == limit:
        note(f"older slots: --before {json_time(found[-1].slot)}")


history.add_commands(
    app, "schedule", operations.list_schedule_changes, operations.roll_back_schedule
)
