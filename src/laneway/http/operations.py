"""Calls about workers, the pause gate, limits and the history."""

from __future__ import annotations

from collections.abc import Sequence

from laneway.domain.change import Change
from laneway.domain.freeze import Freeze, Thawed
from laneway.domain.limit import Limit, LimitStatus, Tuned, check_limit_name
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
    without_none,
)
from laneway.http.declared import read

_WORKERS = "/admin/workers"
_LIMITS = "/admin/limits"


# -- changes ----------------------------------------------------------------------------------


def list_changes(kinds: Sequence[str] = ()) -> Listing[Change]:
    """Changes of lanes, limits and the pause gate, or of the kinds given, newest first."""
    return Listing("/admin/changes", change_of, [("kind", each) for each in listed(kinds, "kinds")])


def change_of(value: object) -> Change:
    found: Change = read(Change, value)
    return found


def rolled_back(path: str, to: int | None) -> Call[Change | None]:
    """A rollback of what is at a path; None: it was so already."""
    body = encoded(without_none({"to": to}))
    return once(Call("POST", f"{path}/rollback", _changed, (), body))


def _changed(answer: CallResponse) -> Change | None:
    found = answer.body["change"]
    return None if found is None else change_of(found)


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


def list_limits() -> Listing[LimitStatus]:
    """Every limit with its use."""
    return Listing(_LIMITS, decode.limit_status)


def get_limit(name: str) -> Call[LimitStatus]:
    """One limit with its use."""
    return Call("GET", _limit(name), lambda answer: decode.limit_status(answer.body))


def put_limit(limit: Limit) -> Call[Tuned]:
    """Makes the limit what is given; creates a new one."""
    names = ("max_concurrent", "rate_count", "rate_period_s", "scope")
    body = encoded({name: getattr(limit, name) for name in names})
    return Call("PUT", _limit(limit.name), _tuned, (), body)


def _tuned(answer: CallResponse) -> Tuned:
    return Tuned(decode.read(Limit, answer.body), is_new=answer.status == 201)


def delete_limit(name: str) -> Call[None]:
    """Deletes a limit that nothing needs."""
    return Call("DELETE", _limit(name), decode.nothing)


def list_limit_changes(name: str) -> Listing[Change]:
    """Every change of the limit that is kept, newest first."""
    return Listing(f"{_limit(name)}/history", change_of)


def roll_back_limit(name: str, to: int | None = None) -> Call[Change | None]:
    """Makes the limit what it was before its newest change, or right after the change `to`."""
    return rolled_back(_limit(name), to)


def _limit(name: str) -> str:
    return f"{_LIMITS}/{in_path(check_limit_name(name))}"
