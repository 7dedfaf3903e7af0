"""The options that select jobs, and the preview, confirmation and result of a bulk verb."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from laneway.cli import completion, connection, inputs
from laneway.cli.exits import ExitCode, fail
from laneway.cli.name_notes import note_unknown_names
from laneway.cli.option_groups import takes
from laneway.cli.output import is_interactive, jobs_word, line, note, show_json, visible

if TYPE_CHECKING:
    from laneway.cli.connection import Backend
    from laneway.domain.bulk import BulkProgress, BulkRequest, Preview
    from laneway.domain.filter import JobFilter

Text = str | None
Flag = bool


def _status(text: str) -> str:
    """Parse a status, or a label such as `queued`."""
    from laneway.domain.states import parse_status
    from laneway.errors import InvalidInput

    try:
        return parse_status(text).value
    except InvalidInput as error:
        raise typer.BadParameter(error.rule) from None


_FILTER: dict[str, Any] = {
    "status": Annotated[
        Text,
        typer.Option(
            parser=_status,
            metavar="STATUS",
            help="Only this status or label.",
            autocompletion=completion.statuses,
        ),
    ],
    "lane": Annotated[Text, typer.Option(help="Only this lane.", autocompletion=completion.lanes)],
    "job_type": Annotated[
        Text,
        typer.Option("--type", help="Only this job type.", autocompletion=completion.job_types),
    ],
    "tag": Annotated[Text, typer.Option(help="Only with this tag.")],
    "worker": Annotated[Text, typer.Option(help="Only jobs of this worker, by name or id.")],
    "workspace": Annotated[Text, typer.Option(help="Only this workspace.")],
    "since": Annotated[
        Any,
        typer.Option(
            metavar="TIME",
            parser=inputs.since,
            help="Submitted since this time, or in the last 2h, 1d …",
        ),
    ],
    "until": Annotated[
        Any, typer.Option(metavar="TIME", parser=inputs.moment, help="Submitted before this time.")
    ],
    "ended_since": Annotated[
        Any,
        typer.Option(
            metavar="TIME",
            parser=inputs.since,
            help="Ended since this time, or in the last 2h, 1d …",
        ),
    ],
    "older_than": Annotated[
        float | None,
        typer.Option(
            metavar="DURATION", parser=inputs.duration, help="Submitted longer ago than this."
        ),
    ],
    "q": Annotated[
        Text,
        typer.Option("--q", metavar="TEXT", help="With this text in id, type, error or payload."),
    ],
    "error_type": Annotated[
        Text, typer.Option("--error", metavar="TYPE", help="Failed with this type of error.")
    ],
    "flow": Annotated[
        Any, typer.Option(metavar="ID", parser=inputs.full_id, help="Only jobs of this flow.")
    ],
    "max_cost": Annotated[
        float | None, typer.Option(help="Whose analysis costs at most this; needs --unit.")
    ],
    "unit": Annotated[Text, typer.Option(help="The unit of --max-cost: EUR, tokens …")],
}
_BULK: dict[str, Any] = {
    "everything": Annotated[Flag, typer.Option("--all", help="All jobs.")],
    "dry_run": Annotated[Flag, typer.Option("--dry-run", help="Only show what would happen.")],
    "yes": Annotated[Flag, typer.Option("--yes", "-y", help="Do not ask for confirmation.")],
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The values of the filter and bulk options."""

    options: dict[str, Any]
    everything: bool = False
    dry_run: bool = False
    yes: bool = False

    @property
    def is_bulk(self) -> bool:
        """Whether jobs are selected by a filter, not by ids."""
        return self.everything or any(value is not None for value in self.options.values())

    @property
    def wanted(self) -> JobFilter:
        from laneway.domain.filter import JobFilter
        from laneway.domain.states import Status

        given = dict(self.options)
        for since, age in (("since", "newer_than"), ("ended_since", "ended_within")):
            if isinstance(given[since], float):
                given[age] = given.pop(since)
        if given["status"] is not None:
            given["status"] = Status(given["status"])
        return JobFilter(**given).check()


def _gather(given: dict[str, Any]) -> Chosen:
    bulk = {name: given.pop(name) for name in _BULK if name in given}
    return Chosen(given, **bulk)


# These decorators give a command the options of a filter, or of a bulk verb, as `chosen`.
filtered = takes("chosen", _FILTER, _gather)
selecting = takes("chosen", {**_FILTER, **_BULK}, _gather)


def check_either(job_ids: list[Any] | None, chosen: Chosen, *, can_dry_run: bool = False) -> None:
    """Require either ids or a filter."""
    if job_ids and chosen.is_bulk:
        raise typer.BadParameter("give ids or a filter, not both")
    if job_ids and chosen.dry_run and not can_dry_run:
        raise typer.BadParameter("--dry-run needs a filter: it counts the matching jobs")
    if not job_ids and not chosen.is_bulk:
        raise typer.BadParameter("give job ids, a filter or --all")


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation, unless --yes was given."""
    if yes:
        return
    if not is_interactive():
        raise fail("cannot ask for confirmation without a terminal: use --yes", ExitCode.REFUSED)
    typer.confirm(question, abort=True, err=True)


def bulk(verb: str, participle: str, chosen: Chosen, json: bool, **more: Any) -> NoReturn:
    """Preview a bulk verb, confirm it, run it and print the result."""
    from laneway.domain.bulk import BulkRequest, BulkVerb

    request = BulkRequest(
        verb=BulkVerb(verb), wanted=chosen.wanted, everything=chosen.everything, **more
    )
    found = connection.run(lambda backend: _preview(backend, request, chosen))
    if chosen.dry_run:
        _show_preview(found, participle, json)
        raise typer.Exit
    if found.matched:
        _note_sample(found)
        confirm(
            f"{verb.capitalize().replace('_', ' ')} {found.count} {jobs_word(found.matched)}?",
            yes=chosen.yes,
        )
        progress = connection.run(lambda backend: _run(backend, request, found))
    else:
        progress = None
    raise typer.Exit(_show_result(progress, verb, participle, json))


async def _preview(backend: Backend, request: BulkRequest, chosen: Chosen) -> Preview:
    found = await backend.preview(request)
    if not found.matched:
        await note_unknown_names(backend, chosen.options)
    return found


async def _run(backend: Backend, request: BulkRequest, found: Preview) -> BulkProgress | None:
    running = await _count_running(backend, request)
    progress: BulkProgress | None = None
    async for progress in backend.run_bulk(request, found.upto):
        if is_interactive():
            note(f"{progress.done + progress.refused.total():,} of {found.count}")
    if progress is not None and progress.asked_to_stop is None and running is not None:
        # A server does not count them: use the number that ran before the request.
        progress.asked_to_stop = min(running, progress.done)
    return progress


async def _count_running(backend: Backend, request: BulkRequest) -> int | None:
    """Count the running jobs that a cancel matches; None if that is unknown."""
    from dataclasses import replace

    from laneway.domain.bulk import BulkVerb
    from laneway.domain.states import Status

    if request.verb is not BulkVerb.CANCEL:
        return None
    if request.wanted.status not in (None, Status.RUNNING):
        return 0
    only = replace(request, wanted=replace(request.wanted, status=Status.RUNNING))
    found = await backend.preview(only)
    return None if found.is_more else found.matched


def _show_preview(found: Preview, participle: str, json: bool) -> None:
    if json:
        show_json(found.to_dict())
        return
    line(f"{found.count} {jobs_word(found.matched)} would be {participle}")
    for job in found.sample:
        line(f"  {job.id} {visible(job.job_type)} {job.label}")


def _note_sample(found: Preview) -> None:
    if is_interactive():
        for job in found.sample:
            note(f"  {job.id} {visible(job.job_type)} {job.label}")


def _show_result(progress: BulkProgress | None, verb: str, participle: str, json: bool) -> ExitCode:
    from laneway.domain.bulk import BulkProgress, BulkVerb

    progress = progress or BulkProgress(BulkVerb(verb))
    if json:
        show_json(progress.to_dict())
    else:
        note(_done(progress, participle))
        for reason, count in progress.refused.most_common():
            note(f"{count:,} {jobs_word(count)} refused: {visible(reason)}")
    return ExitCode.REFUSED if progress.refused else ExitCode.OK


def _done(progress: BulkProgress, participle: str) -> str:
    """The result in words; a cancelled running job ends only when its worker stops it."""
    text = f"{progress.done:,} {jobs_word(progress.done)} {participle}"
    if progress.verb.value != "cancel":
        return text
    if progress.asked_to_stop is None:
        return f"{text} or asked to stop" if progress.done else text
    if not progress.asked_to_stop:
        return text
    at_once = progress.done - progress.asked_to_stop
    return (
        f"{at_once:,} {jobs_word(at_once)} {participle}, {progress.asked_to_stop:,} asked to stop"
    )
