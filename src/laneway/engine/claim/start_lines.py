"""Log lines at the start of a worker: what it serves, and the lane of each of its job types."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from shlex import quote
from typing import Final, NamedTuple

from laneway import __version__
from laneway.config.lanes import SEEDED, is_seeded, is_set_by_operator, preset
from laneway.config.settings import Settings
from laneway.domain.lane import Lane
from laneway.domain.redaction import redact_dsn
from laneway.engine.claim.lane_routing import served
from laneway.engine.registry import Handler, Registry
from laneway.observability.safe_logger import SafeLogger
from laneway.store.lanes import ControlState

log = SafeLogger("laneway")

# Job types and lanes that are named; more are counted.
MAX_NAMED: Final = 20
_CURE: Final = "`laneway lanes load plain` replaces all lanes by four without job types"


class RoutedType(NamedTuple):
    """A job type, its lane, the lane's slots, and the reason why it is in that lane."""

    job_type: str
    lane: str
    slots: str
    reason: str


def routed_types(
    registry: Registry, state: ControlState, only: frozenset[str] | None
) -> list[RoutedType]:
    """The lanes of all job types of a worker, by name."""
    found = []
    for handler in sorted(registry, key=lambda one: one.job_type):
        lane = state.lane_of(handler.job_type)
        reason = _reason(handler, lane, state)
        if only is not None and lane not in only:
            reason += "; not served: it is not in --lanes"
        found.append(RoutedType(handler.job_type, lane, _slots(state.lanes.get(lane)), reason))
    return found


def log_start(
    worker: str,
    settings: Settings,
    registry: Registry,
    state: ControlState,
    only: frozenset[str] | None,
    *,
    database: str,
    lists_types: bool = True,
) -> None:
    """Log what the worker serves, then the lane of each job type."""
    types = routed_types(registry, state, only)
    lanes = sorted(served(state, registry.runnable, only))
    where = f"database {redact_dsn(database) or 'of the PG variables'}"
    facts = f"laneway {__version__}, {where}, {room_text(settings, registry)}"
    if lanes:
        log.info("%s serves %s: %s", worker, named(lanes), facts)
    elif types:
        there = named([f"{one.job_type} is in {one.lane}" for one in types])
        log.warning(
            "%s serves no lane (%s): none of its job types is in %s; %s",
            worker, facts, " or ".join(sorted(only or ())), there,
        )  # fmt: skip
    else:
        log.warning("%s serves no lane (%s): %s", worker, facts, registry.why_empty)
    if state.paused:
        log.warning("all claims are paused: jobs wait until `laneway resume`")
    if lists_types:
        _log_types(types)
        _log_overruled(registry, state, only)
        _warn_of_unestimated(registry)


def _log_types(types: Sequence[RoutedType]) -> None:
    shown = types[:MAX_NAMED]
    width = max((len(one.job_type) for one in shown), default=0)
    lane_width = max((len(one.lane) for one in shown), default=0)
    slot_width = max((len(one.slots) for one in shown), default=0)
    for one in shown:
        log.info(
            "  %s  %s  %s  %s",
            one.job_type.ljust(width),
            one.lane.ljust(lane_width),
            one.slots.ljust(slot_width),
            one.reason,
            extra={**one._asdict()},
        )
    if len(types) > len(shown):
        log.info(
            "  … and %s more job types: `laneway lanes ls` lists lanes with their job types",
            len(types) - len(shown),
        )


def _log_overruled(registry: Registry, state: ControlState, only: frozenset[str] | None) -> None:
    """Log handlers whose lane is not the one of the database, with the command to move them.

    It is a warning unless an operator put the type there and this worker serves that lane.
    """
    overruled = [
        (handler.job_type, found, handler.lane)
        for handler in sorted(registry, key=lambda one: one.job_type)
        if handler.lane not in (None, found := state.lane_of(handler.job_type))
    ]
    for job_type, found, wanted in overruled[:MAX_NAMED]:
        is_expected = _is_moved_by_operator(job_type, state.lanes.get(found)) and (
            only is None or found in only
        )
        log.log(
            logging.INFO if is_expected else logging.WARNING,
            "job type %s is in the lane %s of the database, its handler says %s, and the database"
            " decides. To change it: `laneway lanes move %s %s`",
            job_type, found, wanted, quote(job_type), wanted,
        )  # fmt: skip
    if len(overruled) > MAX_NAMED:
        log.warning(
            "%s more job types are in other lanes than their handlers say",
            len(overruled) - MAX_NAMED,
        )


def _warn_of_unestimated(registry: Registry) -> None:
    """Warn of policies that compare a cost which nothing estimates."""
    for record in registry.records():
        bound = None if record.approval is None else record.approval.below
        if bound is not None and not record.has_analysis:
            log.warning(
                "job type %s has no analysis, so no job is below the bound of its approval: every"
                " job waits for a person. Estimate the cost in a function with @….analyze",
                record.name,
            )


def _is_moved_by_operator(job_type: str, row: Lane | None) -> bool:
    """Whether neither a new database nor a worker put the job type into this lane."""
    if row is None or not is_set_by_operator(row):
        return False
    return not any(one.name == row.name and job_type in one.job_types for one in preset(SEEDED))


def named(names: Sequence[str]) -> str:
    """The names, or the first of many and the number of the others."""
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def room_text(settings: Settings, registry: Registry) -> str:
    """The number of job types, and the jobs that run at once for each isolation in use."""
    sizes = {
        "async": f"concurrency {settings.concurrency}",
        "thread": f"threads {settings.threads}",
        "process": f"children {settings.children}",
    }
    used = {handler.isolation for handler in registry.runnable}
    count = len(registry)
    texts = [f"{count} job type{'' if count == 1 else 's'}"]
    texts += [text for isolation, text in sizes.items() if isolation in used]
    if settings.slots is not None:
        texts.append(f"slots {settings.slots}")
    return ", ".join(texts)


def _slots(lane: Lane | None) -> str:
    if lane is None or lane.max_slots is None:
        text = "unbounded"
    else:
        text = f"{lane.max_slots} slot{'' if lane.max_slots == 1 else 's'}"
    return text if lane is None or lane.enabled else f"{text}, drained"


def _reason(handler: Handler, lane: str, state: ControlState) -> str:
    if handler.lane == lane:
        return "the handler"
    row = state.lanes.get(lane)
    is_in_row = row is not None and handler.job_type in row.job_types
    if handler.lane is not None:
        return f"the lane's row (the handler says {handler.lane})"
    if row is None or not is_in_row:
        cure = f"`laneway lanes move {quote(handler.job_type)} LANE` moves it"
        return f"the default: no lane lists it; {cure}"
    if not is_seeded(row):
        return "the lane's row"
    return f"the lane's row, as seeded; {_CURE}"
