"""Changes of the control plane, with the settings before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar, Final, Literal, get_args

from annotated_types import Interval

from laneway.domain.annotations import Doc

Kind = Literal["lane", "limit", "schedule", "gate"]
# Kinds with a history, and kinds that roll back; the pause gate has its own verbs.
KINDS: Final = get_args(Kind)
RESTORABLE: Final = ("lane", "limit", "schedule")
LARGEST_ID: Final = 2**63 - 2

# The state to go back to.
RollbackTarget = Annotated[
    int | None,
    Interval(ge=0, le=LARGEST_ID),
    Doc(
        "The id of a change: the state right after it; 0: before the first that is kept; "
        "null: before the newest"
    ),
]


def differences(
    before: Mapping[str, object], after: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    """The settings that differ, each with its value before and after."""
    names = [*after, *(name for name in before if name not in after)]
    pairs = {name: (before.get(name), after.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one object: its time, its actor, and the states before and after."""

    computed: ClassVar = ("verb",)

    id: int
    at: datetime
    by: str
    kind: Kind
    name: str
    before: Annotated[Mapping[str, object] | None, Doc("null: it was created")]
    after: Annotated[Mapping[str, object] | None, Doc("null: it was deleted")]

    @property
    def verb(self) -> Literal["created", "changed", "deleted"]:
        if self.before is None:
            return "created"
        return "deleted" if self.after is None else "changed"

    @property
    def differences(self) -> dict[str, tuple[object, object]]:
        """As `differences`; empty for a creation or a deletion."""
        if self.before is None or self.after is None:
            return {}
        return differences(self.before, self.after)
