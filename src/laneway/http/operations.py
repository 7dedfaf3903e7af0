"""Calls about workers, the pause gate, limits and the history."""

from __future__ import annotations

from collections.abc import Sequence

from laneway.domain.change import Change
from laneway.domain.freeze import Freeze, Thawed
from laneway.domain.limit import Limit, LimitSettings, Tuned, check_limit_name
from laneway.domain.overview import Gate, LaneStatus, Overview
from laneway.http import decode
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
    oldest = status["oldest_transaction"]
    return Overview(
        decode.gate(status),
        [read(LaneStatus, each) for each in status["lanes"]],
        [decode.active(each) for each in status["active"]],
        [decode.worker(each) for each in (*status["workers"], *status.get("silent", ()))],
        None if oldest is None else decode.old_snapshot(oldest),
    )


def pause_claims() -> Call[Gate]:
    """Shuts the pause gate: no claim commits until it is opened."""
    return once(Call("POST", f"{_WORKERS}/pause", _gate))


def resume_claims() -> Call[Gate]:
    """Opens the pause gate; drained lanes stay drained."""
    return once(Call("POST", f"{_WORKERS}/resume", _gate))


def _gate(answer: CallResponse) -> Gate:
    return decode.gate(answer.body)


def freeze_lanes(
    lanes: Sequence[str] | None = None, *, deadline: float = 0, or_thaw: bool = False
) -> Call[Freeze]:
    """Drains lanes (None: all) and answers what still runs in them, at most 10 s later."""
    body = {"lanes": _names(lanes), "deadline": deadline, "or_thaw": or_thaw}
    path = f"{_WORKERS}/freeze"
    return once(Call("POST", path, lambda answer: decode.freeze(answer.body), (), encoded(body)))


def thaw_lanes(lanes: Sequence[str] | None = None) -> Call[list[Thawed]]:
    """Makes frozen lanes (None: all) again what they were before."""
    path, body = f"{_WORKERS}/thaw", {"lanes": _names(lanes)}
    return once(Call("POST", path, lambda answer: decode.thawed(answer.body), (), encoded(body)))


def _names(lanes: Sequence[str] | None) -> list[str] | None:
    return None if lanes is None else listed(lanes, "lanes")


# -- limits -----------------------------------------------------------------------------------


def put_limit(limit: Limit) -> Call[Tuned]:
    """Makes the limit what is given; creates a new one."""
    path = f"/admin/limits/{in_path(check_limit_name(limit.name))}"
    body = encoded({name: getattr(limit, name) for name in LimitSettings.__annotations__})
    return Call("PUT", path, _tuned, (), body)


def _tuned(answer: CallResponse) -> Tuned:
    return Tuned(read(Limit, answer.body), is_new=answer.status == 201)
