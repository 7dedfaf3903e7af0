"""The table that `laneway jobs import` reads, and how its rows become jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from laneway.errors import InvalidInput

# The options of a submit that an expression may give.
OPTIONS: Final = (
    "priority",
    "run_at",
    "unique_key",
    "concurrency_key",
    "workspace",
    "tags",
    "max_retries",
    "created_by",
)


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """A table of jobs of another system. The values are SQL: names and expressions of its columns.

    `moved` is what to set in a row that became a job, in the same transaction, so that `where` is
    false then; it may use `laneway_job_id`. None: the row is deleted.
    """

    table: str
    where: str
    job_type: str
    payload: str
    moved: str | None = None
    id: str = "id"
    options: Mapping[str, str] = field(default_factory=dict)
    # The job types of Laneway by their names in the table; others stay as they are.
    job_types: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> ImportPlan:
        """The plan of a TOML table; InvalidInput names the field and the rule."""
        given = dict(given)
        is_deleted = given.pop("delete", False)
        known = {each.name for each in fields(cls)}
        if unknown := sorted(given.keys() - known):
            raise InvalidInput(unknown[0], f"is not one of {', '.join(sorted(known))}, delete")
        for name in ("table", "where", "job_type", "payload", "moved", "id"):
            value = given.get(
                name, "" if name in ("table", "where", "job_type", "payload") else None
            )
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise InvalidInput(name, "must be SQL text")
        if not isinstance(is_deleted, bool) or is_deleted == ("moved" in given):
            raise InvalidInput("moved", "must say what to set in a row, or `delete = true` instead")
        for name, allowed in (("options", OPTIONS), ("job_types", None)):
            _check_texts(name, given.get(name, {}), allowed)
        return cls(**given)


def _check_texts(name: str, given: object, allowed: tuple[str, ...] | None) -> None:
    if not isinstance(given, Mapping):
        raise InvalidInput(name, "must be a table")
    for key, value in given.items():
        if allowed is not None and key not in allowed:
            raise InvalidInput(f"{name}.{key}", f"is not one of {', '.join(allowed)}")
        if not isinstance(value, str) or not value.strip():
            raise InvalidInput(f"{name}.{key}", "must be text")
