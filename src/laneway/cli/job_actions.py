"""`laneway jobs approve|reject|cancel|…`, on jobs given by ids or by a filter"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import typer

from laneway.cli import completion, connection, filter_options, inputs
from laneway.cli.exits import ExitCode, report
from laneway.cli.filter_options import Chosen, check_either, selecting
from laneway.cli.inputs import JobIds, Json
from laneway.cli.job_ids import resolve
from laneway.cli.output import note, show_json, visible

if TYPE_CHECKING:
    from laneway.cli.connection import Backend
    from laneway.domain.job import Job
    from laneway.domain.job_id import IdPrefix

# Jobs that a message names.
_NAMED: Final = 3


@selecting
def approve(
    job_ids: JobIds = None,
    comment: Annotated[str | None, typer.Option(help="Why; kept with the decision.")] = None,
    seal: Annotated[
        str | None, typer.Option(help="Only if `jobs show` still shows this seal; for one job.")
    ] = None,
    json: Json = False,
    *,
    chosen: Chosen,
) -> None:
    """Approve jobs that await approval."""
    check_either(job_ids, chosen)
    if seal is not None and len(job_ids or ()) != 1:
        raise typer.BadParameter("--seal needs the id of one job")
    if not job_ids:
        filter_options.bulk("approve", "approved", chosen, json, reason=comment)
    _each(
        job_ids,
        lambda backend, job_id: backend.approve(job_id, comment, seal),
        json,
        lambda job: "approved",
    )


@selecting
def reject(
    reason: Annotated[str, typer.Option(help="Why; kept with the job.")],
    job_ids: JobIds = None,
    json: Json = False,
    *,
    chosen: Chosen,
) -> None:
    """Reject jobs that await approval; they are cancelled."""
    check_either(job_ids, chosen)
    if not job_ids:
        filter_options.bulk("reject", "rejected", chosen, json, reason=reason)
    _each(
        job_ids,
        lambda backend, job_id: backend.reject(job_id, reason),
        json,
        lambda job: "rejected",
    )


@selecting
def cancel(
    job_ids: JobIds = None,
    reason: Annotated[str | None, typer.Option(help="Why; kept with the job.")] = None,
    json: Json = False,
    *,
    chosen: Chosen,
) -> None:
    """Cancel waiting jobs at once; ask the workers of running jobs to stop."""
    check_either(job_ids, chosen)
    if not job_ids:
        filter_options.bulk("cancel", "cancelled", chosen, json, reason=reason)
    _each(
        job_ids,
        lambda backend, job_id: backend.cancel(job_id, reason),
        json,
        lambda job: (
            "cancelled" if job.status.value == "cancelled" else f"{job.worker} was asked to stop"
        ),
    )


@selecting
def retry(job_ids: JobIds = None, json: Json = False, *, chosen: Chosen) -> None:
    """Queue failed or cancelled jobs again, with a new retry budget."""
    check_either(job_ids, chosen)
    if not job_ids:
        filter_options.bulk("retry", "retried", chosen, json)
    _each(
        job_ids,
        lambda backend, job_id: backend.retry(job_id),
        json,
        _retried,
    )


@selecting
def run_now(job_ids: JobIds = None, json: Json = False, *, chosen: Chosen) -> None:
    """Start jobs now that are delayed, snoozed or asleep, or wait for a retry."""
    check_either(job_ids, chosen)
    if not job_ids:
        filter_options.bulk("run_now", "made due", chosen, json)
    _each(job_ids, lambda backend, job_id: backend.run_now(job_id), json, lambda job: "due now")


@selecting
def reprioritize(
    job_id: Annotated[
        Any,
        typer.Argument(
            metavar="ID",
            parser=inputs.job_id,
            help="The id of a job, or its first digits.",
            autocompletion=completion.job_ids,
        ),
    ] = None,
    its_priority: Annotated[
        int | None, typer.Argument(metavar="PRIORITY", help="Higher runs first.")
    ] = None,
    priority: Annotated[
        int | None, typer.Option(metavar="N", help="The priority, when jobs are given by a filter.")
    ] = None,
    json: Json = False,
    *,
    chosen: Chosen,
) -> None:
    """Change the priority of waiting jobs; write -- before a negative one."""
    job_ids = None if job_id is None else [job_id]
    check_either(job_ids, chosen)
    given = [each for each in (its_priority, priority) if each is not None]
    if len(given) != 1:
        raise typer.BadParameter("give the priority once: ID PRIORITY, or --priority N")
    (wanted,) = given
    if not job_ids:
        filter_options.bulk("reprioritize", "reprioritized", chosen, json, priority=wanted)
    _each(
        job_ids,
        lambda backend, each: backend.reprioritize(each, wanted),
        json,
        lambda job: f"priority {job.priority}",
    )


@selecting
def delete(job_ids: JobIds = None, json: Json = False, *, chosen: Chosen) -> None:
    """Delete finished jobs with their history."""
    check_either(job_ids, chosen, can_dry_run=True)
    if not job_ids:
        filter_options.bulk("delete", "deleted", chosen, json)
    count = len(job_ids or ())
    if not chosen.dry_run:
        filter_options.confirm(f"Delete {count} job{'s' if count > 1 else ''}?", yes=chosen.yes)

    async def verb(backend: Backend, job_id: UUID) -> Job:
        job = await backend.check_deletable(job_id)
        if not chosen.dry_run:
            await backend.delete(job_id)
        return job

    result = "would be deleted" if chosen.dry_run else "deleted"
    _each(job_ids, verb, json, lambda job: result)


def _retried(job: Job) -> str:
    """Describe where a retried job is: queued, or waiting for what has not completed."""
    if job.status.value == "awaiting_approval":
        return "awaits its approval again"
    if job.status.value != "waiting":
        return "queued again"
    wait = job.waits_for
    named = [] if wait is None else [str(each) for each in wait.jobs[:_NAMED]]
    count = len(named) if wait is None or wait.missing is None else wait.missing
    more = f" and {count - len(named)} more" if count > len(named) else ""
    what = f"{', '.join(named)}{more}" if named else "other jobs"
    return f"waits for {what}: `laneway jobs explain {job.id}` says why"


def _each(
    job_ids: list[UUID | IdPrefix] | None,
    verb: Callable[[Backend, UUID], Awaitable[Job]],
    json: bool,
    describe: Callable[[Job], str],
) -> None:
    """Run the verb on every job; a refused job does not stop the rest."""
    from laneway.errors import DatabaseUnavailable, LanewayError, ServerError

    async def run_all(backend: Backend) -> ExitCode:
        code = ExitCode.OK
        for given in job_ids or ():
            try:
                job_id = await resolve(backend, given)
                job = await verb(backend, job_id)
            except (DatabaseUnavailable, ServerError):
                raise
            except LanewayError as error:
                code = report(error)
                continue
            if json:
                show_json(job.to_dict())
            else:
                note(f"job {job_id}: {visible(describe(job))}")
        return code

    raise typer.Exit(connection.run(run_all))
