"""Which jobs a command is about: the filter's options, written once, and the way of a bulk verb."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from laneway.cli import inputs, session
from laneway.cli.exits import ExitCode, fail
from laneway.cli.output import is_interactive, line, note, show_json, visible

if TYPE_CHECKING:
    from laneway.cli.session import Backend
    from laneway.domain.bulk import BulkProgress, BulkRequest, Preview
    from laneway.domain.filter import JobFilter

STATUSES = ("pending", "awaiting_approval", "approved", "running",
            "completed", "failed", "cancelled")  # fmt: skip
Text = str | None
Flag = bool


def _status(text: str) -> str:
    if text not in STATUSES:
        raise typer.BadParameter(f"{text!r} is no status; there are {', '.join(STATUSES)}")
    return text


_FILTER: dict[str, Any] = {
    "status": Annotated[
        Text, typer.Option(parser=_status, metavar="STATUS", help="Only this status.")
    ],
    "lane": Annotated[Text, typer.Option(help="Only this lane.")],
    "job_type": Annotated[Text, typer.Option("--type", help="Only this job type.")],
    "tag": Annotated[Text, typer.Option(help="Only with this tag.")],
    "worker": Annotated[Text, typer.Option(help="Only of this worker, by name or id.")],
    "workspace": Annotated[Text, typer.Option(help="Only this workspace.")],
    "since": Annotated[
        Any,
        typer.Option(
            metavar="TIME", parser=inputs.since, help="Submitted since then, or 2h, 1d ago."
        ),
    ],
    "until": Annotated[
        Any, typer.Option(metavar="TIME", parser=inputs.moment, help="Submitted before then.")
    ],
    "older_than": Annotated[
        float | None,
        typer.Option(metavar="DURATION", parser=inputs.duration, help="Submitted longer ago."),
    ],
    "q": Annotated[
        Text, typer.Option("--q", metavar="TEXT", help="With this in id, type, error or payload.")
    ],
    "max_cost": Annotated[
        float | None, typer.Option(help="Whose analysis said at most that cost; with --unit.")
    ],
    "unit": Annotated[Text, typer.Option(help="What --max-cost counts: EUR, tokens …")],
}
_BULK: dict[str, Any] = {
    "everything": Annotated[Flag, typer.Option("--all", help="All there are.")],
    "dry_run": Annotated[Flag, typer.Option("--dry-run", help="Only say what would be.")],
    "yes": Annotated[Flag, typer.Option("--yes", "-y", help="Do not ask.")],
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the options say."""

    options: dict[str, Any]
    everything: bool = False
    dry_run: bool = False
    yes: bool = False

    @property
    def is_bulk(self) -> bool:
        """Whether it names jobs by what they are, not by their ids."""
        return self.everything or any(value is not None for value in self.options.values())

    @property
    def wanted(self) -> JobFilter:
        from laneway.domain.filter import JobFilter
        from laneway.domain.states import Status

        given = dict(self.options)
        if isinstance(given["since"], float):
            given["newer_than"] = given.pop("since")
        if given["status"] is not None:
            given["status"] = Status(given["status"])
        return JobFilter(**given).check()


def filtered(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of a filter, which it takes as `chosen`."""
    return _with_options(command, {})


def selecting(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of a bulk verb, which it takes as `chosen`."""
    return _with_options(command, _BULK)


def _with_options(command: Callable[..., None], more: dict[str, Any]) -> Callable[..., None]:
    own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [p for p in own if p.name != "chosen"]
    for name, annotation in {**_FILTER, **more}.items():
        default = None if name in _FILTER else False
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )
        )

    def with_options(**given: Any) -> None:
        options = {name: given.pop(name) for name in _FILTER}
        command(chosen=Chosen(options, **{name: given.pop(name) for name in more}), **given)

    with_options.__name__ = command.__name__
    with_options.__doc__ = command.__doc__
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in parameters}
    return with_options


def check_either(job_ids: list[Any] | None, chosen: Chosen, *, can_dry_run: bool = False) -> None:
    """Ids or a filter, one of them."""
    if job_ids and chosen.is_bulk:
        raise typer.BadParameter("give ids or a filter, not both")
    if job_ids and chosen.dry_run and not can_dry_run:
        raise typer.BadParameter("--dry-run goes with a filter: it counts")
    if not job_ids and not chosen.is_bulk:
        raise typer.BadParameter("give ids of jobs, a filter, or --all")


def confirm(question: str, *, yes: bool) -> None:
    """Goes on when a person says so, or --yes did."""
    if yes:
        return
    if not is_interactive():
        raise fail("nobody can be asked here: confirm with --yes", ExitCode.REFUSED)
    typer.confirm(question, abort=True, err=True)


async def say_unknown_lane(backend: Backend, lane: str | None) -> None:
    """Says so when a filter names a lane that is not there, or cannot be seen."""
    from laneway.domain.missing import hint
    from laneway.errors import Forbidden

    if lane is None:
        return
    try:
        known = {each.lane.name for each in await backend.lanes()}
    except Forbidden:
        return
    if lane not in known:
        note(f"there is no lane {visible(lane)}; {hint('lane', lane, known)}")


def bulk(verb: str, said: str, chosen: Chosen, json: bool, **more: Any) -> NoReturn:
    """Counts, asks, does, and says what became of it; `said` is the verb's past participle."""
    from laneway.domain.bulk import BulkRequest, BulkVerb

    order = BulkRequest(
        verb=BulkVerb(verb), wanted=chosen.wanted, everything=chosen.everything, **more
    )
    found = session.run(lambda backend: _preview(backend, order, chosen))
    if chosen.dry_run:
        _show_preview(found, said, json)
        raise typer.Exit
    if found.matched:
        _say_sample(found)
        confirm(f"{verb.capitalize()} {found.count} {_jobs(found.matched)}?", yes=chosen.yes)
        tally = session.run(lambda backend: _run(backend, order, found))
    else:
        tally = None
    raise typer.Exit(_show_tally(tally, verb, said, json))


async def _preview(backend: Backend, order: BulkRequest, chosen: Chosen) -> Preview:
    found = await backend.preview(order)
    if not found.matched:
        await say_unknown_lane(backend, chosen.options["lane"])
    return found


async def _run(backend: Backend, order: BulkRequest, found: Preview) -> BulkProgress | None:
    running = await _count_running(backend, order)
    tally: BulkProgress | None = None
    async for tally in backend.run_bulk(order, found.upto):
        if is_interactive():
            note(f"{tally.done + tally.refused.total():,} of {found.count}")
    if tally is not None and tally.asked_to_stop is None and running is not None:
        # A server does not count them: those that ran when the order was given.
        tally.asked_to_stop = min(running, tally.done)
    return tally


async def _count_running(backend: Backend, order: BulkRequest) -> int | None:
    """How many running jobs a cancel is for; None where it is not known."""
    from dataclasses import replace

    from laneway.domain.bulk import BulkVerb
    from laneway.domain.states import Status

    if order.verb is not BulkVerb.CANCEL:
        return None
    if order.wanted.status not in (None, Status.RUNNING):
        return 0
    only = replace(order, wanted=replace(order.wanted, status=Status.RUNNING))
    found = await backend.preview(only)
    return None if found.is_more else found.matched


def _show_preview(found: Preview, said: str, json: bool) -> None:
    if json:
        show_json(found.to_dict())
        return
    line(f"{found.count} {_jobs(found.matched)} would be {said}")
    for job in found.sample:
        line(f"  {job.id} {visible(job.job_type)} {job.label}")


def _say_sample(found: Preview) -> None:
    if is_interactive():
        for job in found.sample:
            note(f"  {job.id} {visible(job.job_type)} {job.label}")


def _show_tally(tally: BulkProgress | None, verb: str, said: str, json: bool) -> ExitCode:
    from laneway.domain.bulk import BulkProgress, BulkVerb

    tally = tally or BulkProgress(BulkVerb(verb))
    if json:
        show_json(tally.to_dict())
    else:
        note(_done(tally, said))
        for reason, count in tally.refused.most_common():
            note(f"{count:,} {_jobs(count)} not: {visible(reason)}")
    return ExitCode.REFUSED if tally.refused else ExitCode.OK


def _done(tally: BulkProgress, said: str) -> str:
    """What was done; a running job of a cancel ends when its worker has stopped it."""
    told = f"{tally.done:,} {_jobs(tally.done)} {said}"
    if tally.verb.value != "cancel":
        return told
    if tally.asked_to_stop is None:
        return f"{told} or asked to stop" if tally.done else told
    if not tally.asked_to_stop:
        return told
    at_once = tally.done - tally.asked_to_stop
    return f"{at_once:,} {_jobs(at_once)} {said}, {tally.asked_to_stop:,} asked to stop"


def _jobs(count: int) -> str:
    return "job" if count == 1 else "jobs"
