"""`laneway jobs counts`, `laneway admin failures`, and job types under `laneway admin workers`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli import completion, connection, inputs
from laneway.cli.filter_options import Chosen, filtered
from laneway.cli.inputs import Json
from laneway.cli.name_notes import note_unknown_lane, note_unknown_names
from laneway.cli.output import note, show, show_json, show_json_lines, visible
from laneway.domain.codec import to_json
from laneway.operations import job_types as operations
from laneway.operations.workers import read_failures

if TYPE_CHECKING:
    from laneway.cli.connection import Backend
    from laneway.domain.counts import StateCount
    from laneway.domain.job_type import PublishedType
    from laneway.domain.stats import Failures

Type = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Only this job type.",
        autocompletion=completion.job_types,
    ),
]
Lane = Annotated[
    str | None,
    typer.Option(metavar="LANE", help="Only this lane.", autocompletion=completion.lanes),
]


@filtered
def counts(json: Json = False, *, chosen: Chosen) -> None:
    """Count jobs per state, up to about 10,000."""

    async def verb(backend: Backend) -> list[StateCount]:
        counted = await backend.count_jobs(chosen.wanted)
        if not any(each.count for each in counted):
            await note_unknown_names(backend, chosen.options)
        return counted

    found = connection.run(verb)
    if json:
        show_json_lines(found)
        return
    from laneway.cli import stats_tables

    show(stats_tables.counts(found))


def types(lane: Lane = None, json: Json = False) -> None:
    """List published job types, and whether a live worker runs them."""

    async def verb(backend: Backend) -> list[PublishedType]:
        published = await backend.items(operations.list_job_types(lane=lane))
        if not published:
            await note_unknown_lane(backend, lane)
        return published

    found = connection.run(verb)
    if json:
        show_json_lines(found)
    elif not found:
        of_lane = "" if lane is None else f" of the lane {visible(lane)}"
        note(f"no worker has published a job type{of_lane}")
    else:
        from laneway.cli import stats_tables

        show(stats_tables.types(found))


def publishers(
    job_type: Type = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Only applications that look retired.")
    ] = False,
    json: Json = False,
) -> None:
    """List applications and the job types they publish; the strictest policy applies."""
    found = connection.items(operations.list_publishers(job_type, stale))
    if json:
        show_json_lines(found)
    elif not found:
        note("no application matches")
    else:
        from laneway.cli import stats_tables

        show(stats_tables.publishers(found))


def forget_publisher(
    application: Annotated[
        str,
        typer.Argument(metavar="APPLICATION", help="The application, as `publishers` shows it."),
    ],
    job_type: Type = None,
    json: Json = False,
) -> None:
    """Delete what a retired application published, for one job type or for all."""
    deleted = connection.run(lambda backend: backend.forget_publisher(application, job_type))
    if json:
        show_json({"application": application, "job_types": deleted})
        return
    note(
        f"application {visible(application)}: deleted for {visible(', '.join(deleted))};"
        " policies of other applications apply once their workers restart"
    )


def failures(
    window: Annotated[
        float,
        typer.Option(
            metavar="DURATION",
            parser=inputs.duration,
            show_default="1h",
            help="How far back, at most 1d.",
        ),
    ] = 3600.0,
    lane: Lane = None,
    job_type: Type = None,
    limit: Annotated[int, typer.Option(metavar="N", help="At most N groups, 1 to 200.")] = 20,
    json: Json = False,
) -> None:
    """List recent failures by job type and error, most frequent first."""

    async def verb(backend: Backend) -> Failures:
        asked = read_failures(window_s=int(window), lane=lane, job_type=job_type, top=limit)
        failed = await backend.call(asked)
        if not failed.items:
            await note_unknown_lane(backend, lane)
        return failed

    found = connection.run(verb)
    if json:
        show_json({"is_capped": found.is_capped, "items": to_json(found.items)})
        return
    if not found.items:
        note("no matching job failed in this time")
    else:
        from laneway.cli import stats_tables

        show(stats_tables.failures(found.items))
    if found.is_capped:
        note("too many jobs failed to check all: only the newest are counted")
