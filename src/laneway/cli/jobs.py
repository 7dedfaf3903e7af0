"""`laneway jobs …`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli import completion, connection, inputs, job_actions, job_ids, job_import, stats
from laneway.cli.filter_options import Chosen, filtered
from laneway.cli.groups import group
from laneway.cli.inputs import JobId, JobIds, Json
from laneway.cli.name_notes import note_unknown_names
from laneway.cli.output import (
    console,
    for_people,
    is_terminal,
    line,
    moment,
    note,
    seconds,
    show,
    show_json,
    show_json_lines,
    visible,
)

# Attempts shown at once.
PAGE = 50
# Log lines shown of each attempt, unless --logs says otherwise.
LOG_LINES = 50

if TYPE_CHECKING:
    from uuid import UUID

    from laneway.cli.connection import Backend
    from laneway.domain.job import Job
    from laneway.domain.job_id import IdPrefix
    from laneway.domain.page import Page

app = group("Submit, inspect and control jobs.")

Interval = Annotated[
    float,
    typer.Option(metavar="DURATION", parser=inputs.duration, help="Time between two refreshes."),
]


@app.command()
def submit(
    job_type: Annotated[
        str,
        typer.Argument(metavar="TYPE", help="The job type.", autocompletion=completion.job_types),
    ],
    payload: Annotated[
        str | None, typer.Argument(metavar="[JSON]", help="The payload; - reads stdin.")
    ] = None,
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Read the payload from a file.")
    ] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="One argument; parsed as JSON if possible, else text."
        ),
    ] = None,
    priority: Annotated[int | None, typer.Option(help="Higher runs first.")] = None,
    delay: Annotated[
        float | None,
        typer.Option(
            metavar="DURATION",
            parser=inputs.duration,
            help="Start after this delay at the earliest.",
        ),
    ] = None,
    run_at: Annotated[
        Any,
        typer.Option(
            metavar="TIME", parser=inputs.moment, help="Start at this time at the earliest."
        ),
    ] = None,
    unique_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="At most one live job per type and key.")
    ] = None,
    unique_for: Annotated[
        float | None,
        typer.Option(
            metavar="DURATION",
            parser=inputs.duration,
            help="At most one job per type and key within this time, also after it has ended.",
        ),
    ] = None,
    unique_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARGUMENT",
            help="An argument that forms the unique key; may be repeated. Default: all.",
        ),
    ] = None,
    concurrency_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="At most one running job per key.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be repeated.")] = None,
    workspace: Annotated[str, typer.Option(help="The workspace.")] = "default",
    max_retries: Annotated[int | None, typer.Option(help="Retries after a failure.")] = None,
    after: Annotated[
        list[Any] | None,
        typer.Option(
            metavar="ID",
            parser=inputs.job_id,
            help="Start when this job has completed; may be repeated.",
            autocompletion=completion.job_ids,
        ),
    ] = None,
    after_failure: Annotated[
        str | None,
        typer.Option(metavar="cancel|run|hold", help="If a job of --after fails; default: cancel."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job ends.")] = False,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="DURATION", parser=inputs.duration, help="With --wait: stop waiting after this."
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the id alone, without notes.")
    ] = False,
    json: Json = False,
) -> None:
    """Submit a job and print its id; with --wait, print its result or its error."""
    if quiet and (wait or json):
        raise typer.BadParameter("--quiet prints the id alone: remove --wait and --json")
    if timeout is not None and not wait:
        raise typer.BadParameter("--timeout bounds --wait: add --wait")
    if after_failure is not None and not after:
        raise typer.BadParameter(
            "--after-failure needs --after: the jobs whose failure it is about"
        )
    value = inputs.payload(payload, file, arg or [], connection.settings().payload_limits)

    async def verb(backend: Backend) -> Job:
        from laneway.cli import watch
        from laneway.domain.flow import check_after_failure

        parents = [await job_ids.resolve(backend, each) for each in after or ()]
        with inputs.explained_arguments(arg or []):
            made = await backend.submit(
                job_type,
                value,
                priority=priority,
                delay=delay,
                run_at=run_at,
                unique_key=unique_key,
                unique_for=unique_for,
                unique_by=unique_by or None,
                concurrency_key=concurrency_key,
                workspace=workspace,
                tags=tag or (),
                max_retries=max_retries,
                after=parents,
                after_failure=None if after_failure is None else check_after_failure(after_failure),
            )
        if quiet:
            return made
        similar = await backend.find_unpublished(made)
        if similar is not None:
            note(
                f"no worker has published {visible(job_type)} yet:"
                f" the job waits until one does{visible(similar)}"
            )
        if made.duplicate:
            note(f"job {made.id} has this unique key: no new job was submitted")
        if not wait:
            return made
        note(f"job {made.id} submitted")
        return await watch.wait_for_submitted(backend, made, timeout, note_now=similar is None)

    job = connection.run(verb)
    if not wait:
        show_json(job.to_dict()) if json else line(str(job.id))
        return
    from laneway.cli import watch

    if json:
        show_json(job.to_dict())
    elif job.status.value == "completed":
        show_json(job.result)
    watch.note_outcome(job)
    raise typer.Exit(watch.outcome_code(job))


@app.command()
@filtered
def ls(
    limit: Annotated[int, typer.Option(help="Jobs on a page, at most 200.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Continue after this cursor.")] = None,
    json: Json = False,
    *,
    chosen: Chosen,
) -> None:
    """List jobs, newest first."""
    wanted = chosen.wanted

    async def verb(backend: Backend) -> Page[Job]:
        found = await backend.list_jobs(wanted, limit=limit, cursor=cursor)
        if not found.items:
            await note_unknown_names(backend, chosen.options)
        if is_terminal() and not json:
            short.update(await job_ids.short_ids(backend, (job.id for job in found.items)))
        return found

    short: dict[UUID, str] = {}
    page = connection.run(verb)
    if json:
        show_json_lines(job.to_dict() for job in page.items)
    elif page.items and wanted.status is not None and wanted.status.value == "awaiting_approval":
        from laneway.cli import approvals

        show(approvals.awaiting(page.items, short))
    elif page.items:
        from laneway.cli import job_tables

        show(job_tables.jobs(page.items, short, width=console().width))
    elif page.looked_back_to is None:
        note("no jobs")
    if page.looked_back_to is not None:
        at = moment(page.looked_back_to)
        note(f"no {'more ' if page.items else ''}jobs since {at}, where the search stopped;"
             f" older jobs: --cursor {page.next_cursor}")  # fmt: skip
    elif page.next_cursor:
        note(f"more: --cursor {page.next_cursor}")


app.command()(stats.counts)
app.command("import")(job_import.import_jobs)


@app.command("show")
def show_(
    job_id: JobId,
    attempts_before: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only attempts before this one, newest first."),
    ] = None,
    logs: Annotated[
        int, typer.Option(metavar="N", min=0, help="Newest log lines of each attempt.")
    ] = LOG_LINES,
    json: Json = False,
) -> None:
    """Show one job: plan, cost, decisions, newest attempts, errors and log lines."""
    if attempts_before is not None:
        _show_attempts(job_id, attempts_before, logs, json)
        return
    seen = job_ids.run(job_id, lambda backend, full: backend.review(full))
    if json:
        show_json(seen.to_dict())
        return
    from laneway.cli import approvals

    show(approvals.review(seen, logs))
    if len(seen.job.attempts) == PAGE:
        note(f"older attempts: --attempts-before {seen.job.attempts[0].attempt}")


def _show_attempts(job_id: UUID | IdPrefix, before: int, logs: int, json: bool) -> None:
    page = job_ids.run(
        job_id, lambda backend, full: backend.attempts(full, limit=PAGE, cursor=str(before))
    )
    if json:
        show_json_lines(page.items)
    elif not page.items:
        note(f"no attempts before {before}")
    else:
        from laneway.cli import job_tables

        show(job_tables.attempts(page.items, logs))
    if page.next_cursor is not None:
        note(f"older attempts: --attempts-before {page.next_cursor}")


app.command("run-now")(job_actions.run_now)
for _verb in (
    job_actions.approve,
    job_actions.reject,
    job_actions.cancel,
    job_actions.retry,
    job_actions.reprioritize,
    job_actions.delete,
):
    app.command()(_verb)


@app.command()
def watch(job_id: JobId, interval: Interval = 0.5, json: Json = False) -> None:
    """Follow a job until it ends; exit with 0 if it completes, else with 1."""
    from laneway.cli import watch as following

    is_person = is_terminal() and not json
    follow = following.follow_with_bar if is_person else following.follow_as_json
    job = job_ids.run(job_id, lambda backend, full: follow(backend, full, max(interval, 0.05)))
    if is_person:
        following.note_outcome(job)
    raise typer.Exit(following.outcome_code(job))


@app.command()
def wait(
    ids: JobIds = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="DURATION", parser=inputs.duration, help="Give up after this; never by default."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Wait until jobs end and print their results; exit with 0 if all complete, else with 1."""
    from laneway.cli import watch as following

    if not ids:
        raise typer.BadParameter("give at least one job id")
    ended = connection.run(lambda backend: following.wait_for_all(backend, ids, timeout))
    for job in ended:
        if json:
            show_json(job.to_dict())
        elif job.status.value == "completed":
            show_json(job.result)
        following.note_outcome(job)
    raise typer.Exit(max(map(following.outcome_code, ended)))


@app.command()
def explain(job_id: JobId, json: Json = False) -> None:
    """Show every reason why a job is not running."""
    found = job_ids.run(job_id, lambda backend, full: backend.explain(full))
    if json:
        show_json(found.to_dict())
        return
    line(
        f"{found.id} {visible(found.job_type)} in {found.lane}: {found.label or found.status.value}"
    )
    from laneway.domain.states import TERMINAL

    for reason in found.reasons:
        # The reason of an ended job quotes its error.
        text = reason.message if found.status in TERMINAL else for_people(reason.message)
        line(f"  {reason.code}: {visible(text)}")
    if found.starts_in_s is not None:
        starts = f"in {seconds(found.starts_in_s)}" if found.starts_in_s else "now"
        line(f"  estimated start, by recent run times: {starts}")
    if found.runs_for_s is not None and found.status not in TERMINAL:
        line(f"  jobs of this type recently ran for {seconds(found.runs_for_s)}")
