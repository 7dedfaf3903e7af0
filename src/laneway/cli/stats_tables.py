"""Tables of counts, job types and failures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from laneway.cli.output import moment, seconds, visible
from laneway.cli.tables import columns, depth
from laneway.domain.states import label_of

if TYPE_CHECKING:
    from laneway.domain.counts import StateCount
    from laneway.domain.job_type import PublishedType, Publisher
    from laneway.domain.overview import PriorityLoad
    from laneway.domain.stats import Failure


def counts(items: Iterable[StateCount]) -> Table:
    table = columns("STATUS", "JOBS", right=("JOBS",))
    for each in items:
        table.add_row(label_of(each.status, None), depth(each.count, each.is_capped))
    return table


def waiting(items: Iterable[PriorityLoad]) -> Table:
    table = columns(
        "PRIORITY", "JOB TYPE", "DEPTH", "OLDEST", right=("PRIORITY", "DEPTH", "OLDEST")
    )
    for each in items:
        table.add_row(
            str(each.priority),
            visible(each.job_type),
            depth(each.depth, each.depth_is_capped),
            seconds(each.oldest_wait_s),
        )
    return table


def types(items: Iterable[PublishedType]) -> Table:
    table = columns(
        "JOB TYPE", "LANE", "PRIORITY", "RETRIES", "TIMEOUT", "LIMITS", "APPROVAL", "RETENTION",
        "WORKERS", right=("PRIORITY", "RETRIES", "TIMEOUT"),
    )  # fmt: skip
    for each in items:
        known = Text("live", "green") if each.is_known else Text("none", "yellow")
        table.add_row(
            visible(each.name),
            each.lane,
            str(each.priority),
            str(each.max_retries),
            seconds(each.timeout_s),
            visible(", ".join(each.limits) or "-"),
            _approval(each),
            _retention(each),
            known,
        )
    return table


def publishers(items: Iterable[Publisher]) -> Table:
    table = columns("JOB TYPE", "APPLICATION", "FIRST", "LAST SEEN", "")
    for each in items:
        table.add_row(
            visible(each.job_type),
            visible(each.application),
            moment(each.first_at),
            moment(each.seen_at),
            Text("stale", "yellow") if each.is_stale else "",
        )
    return table


def _approval(one: PublishedType) -> str:
    if one.approval == "below":
        return f"over {one.approval_below:g} {visible(one.approval_unit or '')}".rstrip()
    return one.approval


def _retention(one: PublishedType) -> str:
    """The ages up to which ended jobs are kept, such as `7d, failed 30d`."""
    kept = {
        "completed": one.keep_completed_s,
        "cancelled": one.keep_cancelled_s,
        "failed": one.keep_failed_s,
    }
    ages = {state: "forever" if age is None else seconds(age) for state, age in kept.items()}
    usual = ages.pop("completed")
    texts = [usual, *(f"{state} {age}" for state, age in ages.items() if age != usual)]
    if one.keep_count is not None:
        texts.append(f"at most {one.keep_count:,}")
    return ", ".join(texts)


def failures(items: Iterable[Failure]) -> Table:
    table = columns("FAILURES", "JOB TYPE", "ERROR", "LANE", "LAST", "EXAMPLE", right=("FAILURES",))
    for each in items:
        table.add_row(
            f"{each.failures:,}",
            visible(each.job_type),
            visible(each.error_type or "-"),
            each.lane,
            moment(each.last_at),
            str(each.example),
        )
    return table
