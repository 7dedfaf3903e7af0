"""`laneway jobs …`"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from laneway.cli import inputs, session
from laneway.cli.exits import ExitCode, fail, report
from laneway.cli.groups import group
from laneway.cli.inputs import JobId, JobIds, Json
from laneway.cli.output import (
    is_interactive,
    is_terminal,
    line,
    note,
    show,
    show_json,
    show_json_lines,
    visible,
)

if TYPE_CHECKING:
    from laneway.domain.job import Job
    from laneway.store.database import Database

app = group("Submit, look at and control jobs.")

STATUSES = ("pending", "awaiting_approval", "approved", "running",
            "completed", "failed", "cancelled")  # fmt: skip


def _status(text: str) -> str:
    if text not in STATUSES:
        raise typer.BadParameter(f"{text!r} is no status; there are {', '.join(STATUSES)}")
    return text


Interval = Annotated[
    float,
    typer.Option(metavar="DURATION", parser=inputs.duration, help="Time between two looks."),
]


@app.command()
def submit(
    job_type: Annotated[str, typer.Argument(metavar="TYPE", help="The job type.")],
    payload: Annotated[
        str | None, typer.Argument(metavar="[JSON]", help="The payload; - reads stdin.")
    ] = None,
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Read the payload from a file.")
    ] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="One argument; JSON if it parses, else text."),
    ] = None,
    priority: Annotated[int | None, typer.Option(help="Higher runs first.")] = None,
    delay: Annotated[
        float | None,
        typer.Option(metavar="DURATION", parser=inputs.duration, help="Start no sooner than in …"),
    ] = None,
    run_at: Annotated[
        Any, typer.Option(metavar="TIME", parser=inputs.moment, help="Start no sooner than at …")
    ] = None,
    unique_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="At most one live job per type and key.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be repeated.")] = None,
    workspace: Annotated[str, typer.Option(help="The workspace.")] = "default",
    max_retries: Annotated[int | None, typer.Option(help="Retries after a failure.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end.")] = False,
    json: Json = False,
) -> None:
    """Submit a job; its id goes to stdout, with --wait its result."""
    value = inputs.payload(payload, file, arg or [], session.settings().payload_limits)

    async def verb(db: Database) -> Job:
        from laneway.cli import watch
        from laneway.client import Client
        from laneway.store.workers import published

        client = Client(db, db.settings)
        handle = await client.submit(
            job_type,
            value,
            priority=priority,
            delay=delay,
            run_at=run_at,
            unique_key=unique_key,
            workspace=workspace,
            tags=tag or (),
            max_retries=max_retries,
            created_by=session.principal(),
        )
        await client.close()
        known = (await db.run(published([job_type]))).get(job_type)
        if known is None or not known.is_published:
            note(f"no worker has published {job_type} yet: the job waits for one that knows it")
        if handle.duplicate:
            note(f"unique_key is held by job {handle.id}: nothing new was submitted")
        if not wait:
            return replace(await handle.get(), duplicate=handle.duplicate)
        note(f"job {handle.id} submitted")
        follow = watch.follow_with_bar if is_terminal() else watch.follow_quietly
        return await follow(db, handle.id, 0.2)

    job = session.run(verb)
    if not wait:
        show_json(job.to_dict()) if json else line(str(job.id))
        return
    from laneway.cli import watch

    show_json(job.to_dict() if json else job.result)
    watch.say_outcome(job)
    raise typer.Exit(watch.outcome_code(job))


@app.command()
def ls(
    status: Annotated[
        str | None, typer.Option(parser=_status, metavar="STATUS", help="Only this status.")
    ] = None,
    lane: Annotated[str | None, typer.Option(help="Only this lane.")] = None,
    job_type: Annotated[str | None, typer.Option("--type", help="Only this job type.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only with this tag.")] = None,
    workspace: Annotated[str | None, typer.Option(help="Only this workspace.")] = None,
    since: Annotated[
        Any,
        typer.Option(
            metavar="TIME", parser=inputs.since, help="Submitted since then, or 2h, 1d ago."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(help="Jobs on a page, at most 200.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Where the page before ended.")] = None,
    json: Json = False,
) -> None:
    """List jobs, newest first."""
    from laneway.control import jobs
    from laneway.domain.states import Status
    from laneway.store.jobs import Filter

    wanted = Filter(
        status=Status(status) if status else None,
        lane=lane,
        job_type=job_type,
        tag=tag,
        workspace=workspace,
        since=since,
    )
    page = session.run(lambda db: jobs.listing(db, wanted, limit=limit, cursor=cursor))
    if json:
        show_json_lines(job.to_dict() for job in page.items)
    elif page.items:
        from laneway.cli import tables

        show(tables.jobs(page.items))
    else:
        note("no jobs")
    if page.next_cursor:
        note(f"more: --cursor {page.next_cursor}")


@app.command("show")
def show_(job_id: JobId, json: Json = False) -> None:
    """Show one job with its attempts, errors and log lines."""
    from laneway.control import jobs

    job = session.run(lambda db: jobs.show(db, job_id))
    if json:
        show_json(job.to_dict())
        return
    from laneway.cli import tables

    show(tables.job(job))


@app.command()
def cancel(
    job_ids: JobIds,
    reason: Annotated[str | None, typer.Option(help="Why; kept with the job.")] = None,
    json: Json = False,
) -> None:
    """Cancel waiting jobs at once; ask the workers of running ones to stop."""
    from laneway.control import jobs

    by = session.principal()
    _each(
        job_ids,
        lambda db, job_id: jobs.cancel(db, job_id, by=by, reason=reason),
        json,
        lambda job: (
            "cancelled" if job.status.value == "cancelled" else f"{job.worker} was asked to stop"
        ),
    )


@app.command()
def retry(job_ids: JobIds, json: Json = False) -> None:
    """Let failed or cancelled jobs wait again, with a new retry budget."""
    from laneway.control import jobs

    by = session.principal()
    _each(
        job_ids,
        lambda db, job_id: jobs.retry(db, job_id, by=by),
        json,
        lambda job: "waits again",
    )


@app.command()
def reprioritize(
    job_id: JobId,
    priority: Annotated[int, typer.Argument(help="Higher runs first.")],
    json: Json = False,
) -> None:
    """Give a waiting job another priority (after -- when it is negative)."""
    from laneway.control import jobs

    by = session.principal()
    _each(
        [job_id],
        lambda db, each: jobs.reprioritize(db, each, priority, by=by),
        json,
        lambda job: f"priority {job.priority}",
    )


@app.command()
def delete(
    job_ids: JobIds,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be.")] = False,
) -> None:
    """Delete jobs that have ended, with their history."""
    from laneway.control import jobs

    if not (yes or dry_run):
        if not is_interactive():
            raise fail("nobody can be asked here: confirm with --yes", ExitCode.REFUSED)
        count = len(job_ids)
        typer.confirm(f"Delete {count} job{'s' if count > 1 else ''}?", abort=True, err=True)
    by = session.principal()

    async def verb(db: Database, job_id: UUID) -> Job:
        job = await jobs.check_deletable(db, job_id)
        if not dry_run:
            await jobs.delete(db, job_id, by=by)
        return job

    said = "would be deleted" if dry_run else "deleted"
    _each(job_ids, verb, False, lambda job: said)


@app.command()
def watch(job_id: JobId, interval: Interval = 0.5, json: Json = False) -> None:
    """Follow a job to its end; the exit code is its outcome."""
    from laneway.cli import watch as following

    is_person = is_terminal() and not json
    follow = following.follow_with_bar if is_person else following.follow_as_json
    job = session.run(lambda db: follow(db, job_id, max(interval, 0.05)))
    if is_person:
        following.say_outcome(job)
    raise typer.Exit(following.outcome_code(job))


@app.command()
def explain(job_id: JobId, json: Json = False) -> None:
    """Say every reason why a job is not running."""
    from laneway.control.explain import explain as verb

    told = session.run(lambda db: verb(db, job_id))
    if json:
        show_json(told.to_dict())
        return
    line(f"{told.job.id} {visible(told.job.job_type)} in {told.job.lane}: {told.job.status.value}")
    for reason in told.reasons:
        line(f"  {reason.code}: {visible(reason.message)}")


def _each(
    job_ids: list[UUID],
    verb: Callable[[Database, UUID], Awaitable[Job]],
    json: bool,
    said: Callable[[Job], str],
) -> None:
    """The verb on every job; one that is refused does not keep the others from it."""
    from laneway.errors import DatabaseUnavailable, LanewayError

    async def all_of_them(db: Database) -> ExitCode:
        code = ExitCode.OK
        for job_id in job_ids:
            try:
                job = await verb(db, job_id)
            except DatabaseUnavailable:
                raise
            except LanewayError as error:
                code = report(error)
                continue
            if json:
                show_json(job.to_dict())
            else:
                note(f"job {job_id}: {visible(said(job))}")
        return code

    raise typer.Exit(session.run(all_of_them))
