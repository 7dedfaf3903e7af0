"""Calls about workers, the pause gate, limits and the history."""

from __future__ import annotations

from collections.abc import Sequence

from laneway.domain.change import Change
from laneway.domain.freeze import Freeze
from laneway.domain.limit import Limit, LimitSettings, Tuned, check_limit_name
from laneway.domain.overview import ActiveJob, Gate, LaneStatus, OldSnapshot, Overview, WorkerRow
from laneway.http.call import (
    Call,
    CallResponse,
    Listing,
    encoded,
    in_path,
    listed,
    once,
)
from laneway.http.declared import read

_WORKERS = "/admin/workers"


# -- changes ----------------------------------------------------------------------------------


def list_changes(kinds: Sequence[str] = ()) -> Listing[Change]:
    """Changes of lanes, limits and the pause gate, or of the kinds given, newest first."""
    asked = [("kind", each) for each in listed(kinds, "kinds")]
    return Listing("/admin/changes", lambda value: read(Change, value), asked)


# -- workers ----------------------------------------------------------------------------------


def read_status() -> Call[Overview]:
    """Slots per lane, which job holds which since when, what waits, who is there, who leads."""
    return Call("GET", f"{_WORKERS}/status", _overview)


def _overview(answer: CallResponse) -> Overview:
    status = answer.body
    return Overview(
        read(Gate, status),
        read(list[LaneStatus], status["lanes"]),
        read(list[ActiveJob], status["active"]),
        read(list[WorkerRow], [*status["workers"], *status.get("silent", ())]),
        read(OldSnapshot | None, status["oldest_transaction"]),
    )


def freeze_lanes(
    lanes: Sequence[str] | None = None, *, deadline: float = 0, or_thaw: bool = False
) -> Call[Freeze]:
    """Drains lanes (None: all) and answers what still runs in them, at most 10 s later."""
    names = None if lanes is None else listed(lanes, "lanes")
    body = {"lanes": names, "deadline": deadline, "or_thaw": or_thaw}
    path = f"{_WORKERS}/freeze"
    return once(Call("POST", path, lambda answer: read(Freeze, answer.body), (), encoded(body)))


# -- limits -----------------------------------------------------------------------------------


def put_limit(limit: Limit) -> Call[Tuned]:
    """Makes the limit what is given; creates a new one."""
    path = f"/admin/limits/{in_path(check_limit_name(limit.name))}"
    body = encoded({name: getattr(limit, name) for name in LimitSettings.__annotations__})
    return Call("PUT", path, _tuned, (), body)


def _tuned(answer: CallResponse) -> Tuned:
    return Tuned(read(Limit, answer.body), is_new=answer.status == 201)
