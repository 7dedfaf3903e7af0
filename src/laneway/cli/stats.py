"""`laneway jobs counts`, `laneway admin failures`, and job types under `laneway admin workers`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli import inputs, session
from laneway.cli.filter_options import Chosen, filtered, say_unknown_lane
from laneway.cli.inputs import Json
from laneway.cli.output import note, show, show_json, show_json_lines, visible

if TYPE_CHECKING:
    from laneway.cli.session import Backend
    from laneway.domain.counts import StateCount
    from laneway.domain.job_type import PublishedType
    from laneway.domain.stats import Failures

Type = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only of this job type.")]
Lane = Annotated[str | None, typer.Option(metavar="LANE", help="Only of this lane.")]


@filtered
def counts(chosen: Chosen, json: Json = False) -> None:
    """Count the jobs in each state, up to some 10,000."""

    async def verb(backend: Backend) -> list[StateCount]:
        counted = await backend.count_jobs(chosen.wanted)
        if not any(each.count for each in counted):
            await say_unknown_lane(backend, chosen.options["lane"])
        return counted

    found = session.run(verb)
    if json:
        show_json_lines(each.to_dict() for each in found)
        return
    from laneway.cli import stats_tables

    show(stats_tables.counts(found))


def types(lane: Lane = None, json: Json = False) -> None:
    """Job types that workers have published; those that no live worker knows are told apart."""

    async def verb(backend: Backend) -> list[PublishedType]:
        published = await backend.job_types(lane)
        if not published:
            await say_unknown_lane(backend, lane)
        return published

    found = session.run(verb)
    if json:
        show_json_lines(each.to_dict() for each in found)
    elif not found:
        of_lane = "" if lane is None else f" of the lane {visible(lane)}"
        note(f"no worker has published a job type{of_lane}")
    else:
        from laneway.cli import stats_tables

        show(stats_tables.types(found))


def publishers(
    job_type: Type = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Only applications that seem to be gone.")
    ] = False,
    json: Json = False,
) -> None:
    """Applications and the job types they publish; the strictest policy of all is in force."""
    found = session.run(lambda backend: backend.publishers(job_type, stale))
    if json:
        show_json_lines(each.to_dict() for each in found)
    elif not found:
        note("no such application is known")
    else:
        from laneway.cli import stats_tables

        show(stats_tables.publishers(found))


def forget_publisher(
    application: Annotated[
        str, typer.Argument(metavar="APPLICATION", help="As `publishers` shows it.")
    ],
    job_type: Type = None,
    json: Json = False,
) -> None:
    """Forget the policy of an application that is gone, for one job type or for all."""
    forgotten = session.run(lambda backend: backend.forget_publisher(application, job_type))
    if json:
        show_json({"application": application, "job_types": forgotten})
        return
    note(
        f"application {visible(application)}: forgotten for {visible(', '.join(forgotten))};"
        " what others ask for is in force once their workers start again"
    )


def failures(
    window: Annotated[
        float,
        typer.Option(metavar="DURATION", parser=inputs.duration, help="How far back, at most 1d."),
    ] = 3600.0,
    lane: Lane = None,
    job_type: Type = None,
    limit: Annotated[int, typer.Option(metavar="N", help="At most this many, 1 to 200.")] = 20,
    json: Json = False,
) -> None:
    """What jobs failed of lately, by job type and error, the most frequent first."""

    async def verb(backend: Backend) -> Failures:
        failed = await backend.failures(
            window_s=int(window), lane=lane, job_type=job_type, limit=limit
        )
        if not failed.items:
            await say_unknown_lane(backend, lane)
        return failed

    found = session.run(verb)
    if json:
        show_json({"is_capped": found.is_capped, "items": [each.to_dict() for each in found.items]})
        return
    if not found.items:
        note("no such job has failed in that time")
    else:
        from laneway.cli import stats_tables

        show(stats_tables.failures(found.items))
    if found.is_capped:
        note("more jobs have ended than were looked at: only the newest were")
