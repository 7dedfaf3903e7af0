"""A whole set of lanes, and the changes that make a database match it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, NamedTuple, cast

from laneway.domain.annotations import Doc
from laneway.domain.change import differences
from laneway.domain.lane import ANALYSIS_LANE, DEFAULT_LANE, Lane, LaneSettings
from laneway.errors import InvalidInput

# Laneway itself uses these: a set of lanes without them leaves them as they are.
KEPT: Final = frozenset({DEFAULT_LANE, ANALYSIS_LANE})
_SHOWN: Final = 3

LaneTable = Annotated[dict[str, Any], Doc("The settings of each lane, by its name")]


@dataclass(frozen=True, slots=True)
class SetupChange:
    """The change of one lane that a set of lanes makes."""

    name: str
    action: Literal["created", "changed", "deleted", "drained"]
    before: Annotated[Mapping[str, object] | None, Doc("null: it is created")]
    after: Annotated[Mapping[str, object] | None, Doc("null: it is deleted")]
    reason: Annotated[str | None, Doc("Why it is drained instead of deleted")] = None

    @property
    def differences(self) -> dict[str, tuple[object, object]]:
        return differences(self.before or {}, self.after or {})


class TypeMove(NamedTuple):
    """A job type that changes its lane."""

    job_type: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class LaneSetup:
    """The changes of the lanes that a set of lanes makes, by name."""

    dry_run: Annotated[bool, Doc("Nothing was changed")]
    changes: tuple[SetupChange, ...]

    @property
    def moves(self) -> list[TypeMove]:
        """The job types that change their lane, by name."""
        old = _lane_by_type((each.name, each.before) for each in self.changes)
        new = _lane_by_type((each.name, each.after) for each in self.changes)
        moved = (
            TypeMove(each, old.get(each, DEFAULT_LANE), new.get(each, DEFAULT_LANE))
            for each in sorted(old | new)
        )
        return [each for each in moved if each.old != each.new]


def _lane_by_type(states: Iterable[tuple[str, Mapping[str, object] | None]]) -> dict[str, str]:
    return {
        job_type: name
        for name, state in states
        for job_type in cast("Sequence[str]", (state or {}).get("job_types", ()))
    }


def state_of(lane: Lane) -> dict[str, object]:
    """The settings of a lane as JSON."""
    found = {name: getattr(lane, name) for name in LaneSettings.__annotations__}
    return {"name": lane.name, **found, "job_types": list(lane.job_types)}


def table_of(lanes: Iterable[Lane]) -> dict[str, Any]:
    """The given settings of each lane, by its name, as `read_table` reads them."""
    return {
        lane.name: {
            name: value for name, value in state_of(lane).items() if name in lane.named - {"name"}
        }
        for lane in lanes
    }


def read_table(data: object) -> Iterator[Lane]:
    """Lanes from a table of settings by name, or a list of settings, also under `lanes`."""
    if isinstance(data, Mapping) and set(data) == {"lanes"}:
        data = data["lanes"]
    if isinstance(data, Mapping):
        for name, settings in data.items():
            if not isinstance(settings, Mapping):
                raise InvalidInput(str(name), "must be a table of lane settings")
            yield _lane({"name": name, **settings})
    elif isinstance(data, (list, tuple)):
        for settings in data:
            yield settings if isinstance(settings, Lane) else _lane(settings)
    else:
        raise InvalidInput("lanes", "must be a list of lanes, or a table of them by name")


def _lane(settings: object) -> Lane:
    if not isinstance(settings, Mapping):
        raise InvalidInput("lanes", "must hold a table of settings for each lane")
    # TOML has no null.
    if settings.get("max_slots") == "unbounded":
        settings = {**settings, "max_slots": None}
    try:
        return Lane.of(settings)
    except InvalidInput as error:
        name = settings.get("name")
        field = error.field if name is None else f"lane {name}, {error.field}"
        raise InvalidInput(field, error.rule) from None


def check_setup(lanes: Iterable[Lane]) -> tuple[Lane, ...]:
    """The lanes; InvalidInput if two contradict each other."""
    checked = tuple(lanes)
    owner: dict[str, str] = {}
    for i, lane in enumerate(checked):
        if any(lane.name == other.name for other in checked[:i]):
            raise InvalidInput("lanes", f"names the lane {lane.name} twice")
        if lane.name in KEPT and lane.job_types:
            raise InvalidInput(f"lane {lane.name}, job_types", "must be empty")
        for job_type in lane.job_types:
            if job_type in owner:
                both = f"{owner[job_type]}, {lane.name}"
                raise InvalidInput("lanes", f"puts the job type {job_type} into two lanes: {both}")
            owner[job_type] = lane.name
    return checked


def _placed(wanted: Iterable[Lane]) -> set[str]:
    return {job_type for lane in wanted for job_type in lane.job_types}


def removed_lanes(wanted: Sequence[Lane], present: Mapping[str, Lane]) -> list[Lane]:
    """The lanes that the set lacks, without the job types that it puts elsewhere."""
    placed = _placed(wanted)
    names = {lane.name for lane in wanted} | KEPT
    return [
        replace(lane, job_types=tuple(each for each in lane.job_types if each not in placed))
        for lane in present.values()
        if lane.name not in names
    ]


def plan_setup(
    wanted: Sequence[Lane],
    present: Mapping[str, Lane],
    running: Mapping[str, int],
    waiting: Collection[str],
) -> Iterator[SetupChange]:
    """The changes from the present lanes to the wanted ones.

    `running` counts jobs by lane; `waiting` are job types with waiting jobs. A lane that the set
    lacks is deleted, or drained while it has jobs: in `default` they would run without its bound.
    """
    placed = _placed(wanted)
    for lane in wanted:
        old = present.get(lane.name)
        if old is None:
            yield SetupChange(lane.name, "created", None, state_of(lane))
            continue
        # Draining is an operator's decision of the moment, not a part of the set.
        enabled = lane.enabled if "enabled" in lane.named else old.enabled
        before, after = state_of(old), {**state_of(lane), "enabled": enabled}
        if not lane.job_types and "job_types" not in lane.named:
            # Handlers placed them there.
            after["job_types"] = [each for each in old.job_types if each not in placed]
        if before != after:
            yield SetupChange(lane.name, "changed", before, after)
    for lane in removed_lanes(wanted, present):
        before = state_of(present[lane.name])
        reason = _use_of(lane, running.get(lane.name, 0), waiting)
        if reason is None:
            yield SetupChange(lane.name, "deleted", before, None)
        else:
            after = {**state_of(lane), "enabled": False}
            yield SetupChange(lane.name, "drained", before, after, reason)


def _use_of(lane: Lane, running: int, waiting: Collection[str]) -> str | None:
    """The jobs that keep a lane from being deleted; None: there are none."""
    parts = []
    if running:
        parts.append("a job runs in it" if running == 1 else f"{running} jobs run in it")
    if used := [each for each in lane.job_types if each in waiting]:
        more = f" and {len(used) - _SHOWN} more types" if len(used) > _SHOWN else ""
        parts.append(f"jobs of {', '.join(used[:_SHOWN])}{more} wait in it")
    return ", ".join(parts) or None
