"""A change of the control plane: who changed what, from what to what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

# What has a history, and what can be put back; the pause gate has verbs of its own for that.
KINDS: Final = ("lane", "limit", "schedule", "gate")
RESTORABLE: Final = ("lane", "limit", "schedule")


def differences(
    before: Mapping[str, object], after: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    """The settings that differ, each with its value before and after."""
    names = [*after, *(name for name in before if name not in after)]
    pairs = {name: (before.get(name), after.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the history. `before` is None for a creation, `after` for a deletion."""

    id: int
    at: datetime
    by: str
    kind: str
    name: str
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None

    @property
    def verb(self) -> Literal["created", "changed", "deleted"]:
        if self.before is None:
            return "created"
        return "deleted" if self.after is None else "changed"

    @property
    def differences(self) -> dict[str, tuple[object, object]]:
        """The settings that differ, each with its value before and after; none if it was created
        or deleted."""
        if self.before is None or self.after is None:
            return {}
        return differences(self.before, self.after)

    def to_dict(self) -> dict[str, object]:
        return {
            "id": self.id,
            "at": self.at.isoformat(),
            "by": self.by,
            "kind": self.kind,
            "name": self.name,
            "verb": self.verb,
            "before": self.before,
            "after": self.after,
        }
