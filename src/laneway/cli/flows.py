"""`laneway flows …`"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from laneway.cli import completion, connection, inputs
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.output import (
    jobs_word,
    line,
    moment,
    note,
    show,
    show_json,
    show_json_lines,
    visible,
)
from laneway.operations import flows as operations

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar
    from uuid import UUID

    from laneway.cli.connection import Backend
    from laneway.cli.flow_details import FlowDetails
    from laneway.cli.flow_groups import Grouping
    from laneway.domain.flow import ChangedFlow, Flow, FlowGraph
    from laneway.domain.job_id import IdPrefix
    from laneway.domain.page import Page

    T = TypeVar("T")

app = group("Show and control flows: jobs that were submitted together.")

# Pages of flows in which a prefix is looked up.
_LOOKED_UP: Final = 5
FlowId = Annotated[
    Any,
    typer.Argument(
        metavar="ID",
        parser=inputs.record_id,
        help="The id of a flow, or its first digits.",
        autocompletion=completion.flow_ids,
    ),
]


@app.command()
def ls(
    name: Annotated[str | None, typer.Option(help="Only flows of this name.")] = None,
    status: Annotated[
        str | None, typer.Option(help="Only running, completed, failed or cancelled ones.")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only with this tag.")] = None,
    workspace: Annotated[str | None, typer.Option(help="Only this workspace.")] = None,
    limit: Annotated[int, typer.Option(help="Flows on a page, at most 200.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Continue after this cursor.")] = None,
    json: Json = False,
) -> None:
    """List flows, newest first."""
    from laneway.domain.flow import FlowFilter, check_flow_status

    chosen = None if status is None else check_flow_status(status, "--status")
    wanted = FlowFilter(name=name, status=chosen, tag=tag, workspace=workspace).check()

    async def verb(backend: Backend) -> Page[Flow]:
        return await backend.page(operations.list_flows(wanted), limit, cursor)

    page = connection.run(verb)
    if json:
        show_json_lines(page.items)
    elif page.items:
        from laneway.cli import tables

        show(tables.flows(page.items))
    else:
        note("no flows")
    if page.next_cursor:
        note(f"more: --cursor {page.next_cursor}")


@app.command("show")
def show_(
    flow_id: FlowId,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid diagram.")] = False,
    json: Json = False,
) -> None:
    """Show a flow and draw its graph, with the states of its jobs."""
    if json:
        show_json(_run(flow_id, _whole))
        return
    from laneway.cli import flow_details, flow_graph
    from laneway.cli.flow_groups import grouped

    async def verb(backend: Backend, full: UUID) -> tuple[Flow, Grouping, FlowDetails]:
        found = await _whole(backend, full)
        grouping = grouped(found.jobs)
        alone = [] if mermaid else flow_graph.shown_alone(grouping)
        details = await flow_details.read_details(backend, full, found.jobs, alone)
        return found.flow, grouping, details

    flow, grouping, details = _run(flow_id, verb)
    if not mermaid:
        _line(flow)
    for text in (flow_graph.mermaid if mermaid else flow_graph.drawn)(grouping, details):
        line(text)


@app.command()
def cancel(
    flow_id: FlowId,
    reason: Annotated[str | None, typer.Option(help="Why; kept with each job.")] = None,
    json: Json = False,
) -> None:
    """Cancel all jobs of a flow that have not ended; ask the workers of running ones to stop."""
    done = _run(flow_id, lambda b, full: b.call(operations.cancel_flow(full, reason)))
    _report(done, "cancelled or asked to stop", json)


@app.command()
def retry(flow_id: FlowId, json: Json = False) -> None:
    """Queue the failed and cancelled jobs of a flow again."""
    done = _run(flow_id, lambda b, full: b.call(operations.retry_flow(full)))
    _report(done, "queued again" if done.changed else f"queued again: {_why_none(done)}", json)


@app.command()
def watch(
    flow_id: FlowId,
    interval: Annotated[
        float,
        typer.Option(
            metavar="DURATION",
            parser=inputs.duration,
            show_default="1s",
            help="Time between two refreshes.",
        ),
    ] = 1.0,
    json: Json = False,
) -> None:
    """Follow a flow until all its jobs have ended; exit with 0 if all completed, else with 1."""

    async def follow(backend: Backend, full: UUID) -> Flow:
        last: Flow | None = None
        while True:
            flow = (await backend.call(operations.get_flow(full, 1))).flow
            if flow != last:
                show_json(flow) if json else _line(flow)
            if flow.is_over:
                return flow
            last = flow
            await asyncio.sleep(max(interval, 0.05))

    raise typer.Exit(0 if _run(flow_id, follow).status.value == "completed" else 1)


def _line(flow: Flow) -> None:
    ended = f", ended {moment(flow.finished_at)}" if flow.finished_at else ""
    line(f"{flow.id} {visible(flow.name)}: {flow.status.value}, {flow.counts}{ended}")


def _report(done: ChangedFlow, what: str, json: bool) -> None:
    if json:
        show_json(done)
    else:
        note(f"flow {done.flow.id}: {done.changed} {jobs_word(done.changed)} {what}")


def _why_none(done: ChangedFlow) -> str:
    """The reason why the retry of a flow queued no job again."""
    if not done.flow.counts.failed + done.flow.counts.cancelled:
        return "nothing in it has failed or was cancelled"
    return (
        "its failed and cancelled jobs are left alone, because another job has a unique_key of"
        " theirs, or because they are sub-jobs of a handler that goes on or has completed;"
        " `laneway jobs retry ID` retries one alone, or says why not"
    )


async def _whole(backend: Backend, flow_id: UUID) -> FlowGraph:
    """The flow with all its jobs."""
    most = operations.MOST_JOBS
    found = await backend.call(operations.get_flow(flow_id, most))
    jobs = list(found.jobs)
    while found.next_cursor is not None:
        found = await backend.call(operations.get_flow(flow_id, most, found.next_cursor))
        jobs += found.jobs
    return replace(found, jobs=tuple(jobs))


def _run(given: UUID | IdPrefix, verb: Callable[[Backend, UUID], Awaitable[T]]) -> T:
    """Run one verb on the flow with this id or prefix."""

    async def once(backend: Backend) -> T:
        return await verb(backend, await _resolve(backend, given))

    return connection.run(once)


async def _resolve(backend: Backend, given: UUID | IdPrefix) -> UUID:
    """The full id; a prefix is looked up among the newest flows."""
    from laneway.cli.record_ids import only_record
    from laneway.domain.job_id import IdPrefix
    from laneway.domain.verb_rules import LONGEST_PAGE

    if not isinstance(given, IdPrefix):
        return given
    found: list[Flow] = []
    cursor: str | None = None
    for _ in range(_LOOKED_UP):
        page = await backend.page(operations.list_flows(), LONGEST_PAGE, cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    return only_record(given, found, "flow").id
