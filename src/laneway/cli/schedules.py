"""`laneway schedules …`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli import history, inputs, session
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.output import line, note, show, show_json, show_json_lines

if TYPE_CHECKING:
    from laneway.domain.schedule import Schedule

app = group("Show and change schedules, which submit jobs on a cron.")

Name = Annotated[str, typer.Argument(metavar="SCHEDULE", help="The schedule's name.")]


def _show(schedule: Schedule, done: str, json: bool) -> None:
    if json:
        show_json(schedule.to_dict())
        return
    following = f", next at {schedule.next_at.isoformat()}" if schedule.next_at else ""
    note(f"schedule {schedule.name}: {done}{following}")


@app.command()
def ls(json: Json = False) -> None:
    """List schedules with their next run and the outcome of the last slot."""
    found = session.run(lambda backend: backend.schedules())
    if json:
        show_json_lines(each.to_dict() for each in found)
        return
    from laneway.cli import tables

    show(tables.schedules(found))


@app.command("show")
def show_(schedule: Name, json: Json = False) -> None:
    """Show one schedule, its cron in words and its newest slots."""
    found = session.run(lambda backend: backend.schedule(schedule))
    if json:
        show_json(found.to_dict())
        return
    from laneway.cli import tables

    newest = session.run(lambda backend: backend.slots(schedule, limit=5, before=None))
    show(tables.schedule(found))
    if newest:
        line("")
        show(tables.slots(newest))


@app.command("set")
def set_(
    schedule: Name,
    job_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="The job type it submits.")
    ] = None,
    cron: Annotated[
        str | None,
        typer.Option(metavar="CRON", help="Five fields, six with seconds, or @daily."),
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Time zone: UTC, Europe/Berlin, …")
    ] = None,
    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="The jobs' payload; - reads stdin.")
    ] = None,
    missed: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="For missed slots: coalesce, skip or catch_up."),
    ] = None,
    catch_up: Annotated[
        int | None, typer.Option(metavar="N", help="Catch up at most N slots, 1 to 1000.")
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Submit only if this check passes; or `none`."),
    ] = None,
    priority: Annotated[
        Any,
        typer.Option(
            metavar="N",
            parser=inputs.whole_or_none,
            help="Priority of its jobs; `none` uses the job type's.",
        ),
    ] = None,
    max_retries: Annotated[
        Any,
        typer.Option(
            metavar="N",
            parser=inputs.whole_or_none,
            help="Retries of its jobs; `none` uses the job type's.",
        ),
    ] = None,
    concurrency_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="One running job per key; or `none`.")
    ] = None,
    workspace: Annotated[str | None, typer.Option(help="Workspace of its jobs.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="All tags of its jobs; may be repeated; or `none`.")
    ] = None,
    json: Json = False,
) -> None:
    """Create a schedule (needs --type and --cron), or change the given settings."""
    given: dict[str, Any] = {
        "job_type": job_type,
        "cron": cron,
        "timezone": timezone,
        "missed": missed,
        "catch_up": catch_up,
        "workspace": workspace,
    }
    change = {name: value for name, value in given.items() if value is not None}
    removable: dict[str, Any] = {
        "check_name": check,
        "priority": priority,
        "max_retries": max_retries,
        "concurrency_key": concurrency_key,
    }
    for name, value in removable.items():
        if value is not None:
            change[name] = None if value == inputs.NONE else value
    if tag:
        change["tags"] = [] if tag == [inputs.NONE] else tag
    if payload is not None:
        change["payload"] = inputs.payload(payload, None, [], session.settings().payload_limits)
    made = session.run(lambda backend: backend.put_schedule(schedule, change))
    _show(made, f"set {', '.join(sorted(change))}", json)


@app.command()
def enable(schedule: Name, json: Json = False) -> None:
    """Enable a schedule from its next slot on, and clear an error that stopped it."""
    _show(session.run(lambda backend: backend.enable_schedule(schedule)), "enabled", json)


@app.command()
def disable(schedule: Name, json: Json = False) -> None:
    """Disable a schedule; slots until it is enabled are skipped, not caught up."""
    _show(session.run(lambda backend: backend.disable_schedule(schedule)), "disabled", json)


@app.command()
def delete(schedule: Name, json: Json = False) -> None:
    """Delete a schedule and its slots; its jobs stay, and `rollback` restores it."""
    session.run(lambda backend: backend.delete_schedule(schedule))
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
    ran = session.run(lambda backend: backend.run_schedule(schedule, check=check))
    if json:
        job_id = str(ran.job_id) if ran.job_id else None
        show_json({"answer": ran.answer, "slot": ran.slot.isoformat(), "job_id": job_id})
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
    found = session.run(lambda backend: backend.slots(schedule, limit=limit, before=before))
    if json:
        show_json_lines(each.to_dict() for each in found)
        return
    from laneway.cli import tables

    show(tables.slots(found))
    if len(found) == limit:
        note(f"older slots: --before {found[-1].slot.isoformat()}")


history.add_commands(app, "schedule")
