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
    """The schedules in reach, by name."""
    return Listing(_SCHEDULES, lambda item: decode.read(Schedule, item))


def create_schedule(name: str, settings: Mapping[str, object]) -> Call[Schedule]:
    """A new schedule; it takes its first slot from now on."""
    body = encoded({"name": name, **settings})
    return once(Call("POST", _SCHEDULES, decode.body(Schedule), (), body))


def get_schedule(name: str) -> Call[Schedule]:
    """One schedule and where it stands."""
    return Call("GET", _schedule(name), decode.body(Schedule))


def change_schedule(name: str, change: Mapping[str, object]) -> Call[Schedule]:
    """Changes what is named; slots count from now on. `enabled` stops it and lets it go on."""
    return Call("PATCH", _schedule(name), decode.body(Schedule), (), encoded(change))


def delete_schedule(name: str) -> Call[None]:
    """Deletes a schedule and its slots; the jobs it submitted stay."""
    return Call("DELETE", _schedule(name), decode.nothing)


def run_schedule(name: str, *, check: bool = False) -> Call[RunNow]:
    """Run the schedule once, now; with `check`, if a worker finds that its check holds."""
    path, body = f"{_schedule(name)}/run", encoded({"check": check})
    return once(Call("POST", path, decode.body(RunNow), (), body))


def list_slots(name: str) -> Listing[Slot]:
    """What came of its slots, newest first."""
    return Listing(f"{_schedule(name)}/slots", lambda item: decode.read(Slot, item))


def list_schedule_changes(name: str) -> Listing[Change]:
    """Every change of the schedule that is kept, newest first."""
    return Listing(f"{_schedule(name)}/history", change_of)


def roll_back_schedule(name: str, to: int | None = None) -> Call[Change | None]:
    """Makes the schedule what it was before its newest change, or right after the change `to`."""
    return rolled_back(_schedule(name), to)


def _schedule(name: str) -> str:
    return f"{_SCHEDULES}/{in_path(check_schedule_name(name))}"
