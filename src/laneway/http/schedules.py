"""Calls about schedules."""

from __future__ import annotations

from collections.abc import Mapping

from laneway.domain.change import Change
from laneway.domain.schedule import RunNow, Schedule, Slot, check_schedule_name
from laneway.http import decode
from laneway.http.call import Call, Listing, encoded, in_path, once
from laneway.http.operations import change_of, rolled_back

_SCHEDULES = "/admin/schedules"


def list_schedules() -> Listing[Schedule]:
    """List visible schedules by name."""
    return Listing(_SCHEDULES, lambda item: decode.read(Schedule, item))


def create_schedule(name: str, settings: Mapping[str, object]) -> Call[Schedule]:
    """Create a schedule; its first slot is the next one from now."""
    body = encoded({"name": name, **settings})
    return once(Call("POST", _SCHEDULES, decode.body(Schedule), (), body))


def get_schedule(name: str) -> Call[Schedule]:
    """Return one schedule and its state."""
    return Call("GET", _schedule(name), decode.body(Schedule))


def change_schedule(name: str, change: Mapping[str, object]) -> Call[Schedule]:
    """Change the named settings, for slots from now on. `enabled` stops and restarts it."""
    return Call("PATCH", _schedule(name), decode.body(Schedule), (), encoded(change))


def delete_schedule(name: str) -> Call[None]:
    """Delete a schedule and its slots; the jobs it submitted stay."""
    return Call("DELETE", _schedule(name), decode.nothing)


def run_schedule(name: str, *, check: bool = False) -> Call[RunNow]:
    """Run the schedule once, now; with `check`, only if its check passes on a worker."""
    path, body = f"{_schedule(name)}/run", encoded({"check": check})
    return once(Call("POST", path, decode.body(RunNow), (), body))


def list_slots(name: str) -> Listing[Slot]:
    """List the outcomes of its slots, newest first."""
    return Listing(f"{_schedule(name)}/slots", lambda item: decode.read(Slot, item))


def list_schedule_changes(name: str) -> Listing[Change]:
    """List the kept changes of the schedule, newest first."""
    return Listing(f"{_schedule(name)}/history", change_of)


def roll_back_schedule(name: str, to: int | None = None) -> Call[Change | None]:
    """Restore the schedule to before its newest change, or to right after the change `to`."""
    return rolled_back(_schedule(name), to)


def _schedule(name: str) -> str:
    return f"{_SCHEDULES}/{in_path(check_schedule_name(name))}"
