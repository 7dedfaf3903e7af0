"""Ids of tokens and grants on the command line: a unique prefix is enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar
from uuid import UUID

from laneway.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from laneway.domain.job_id import IdPrefix


class Record(Protocol):
    """A token or a grant."""

    @property
    def id(self) -> UUID: ...


R = TypeVar("R", bound=Record)


def only_record(given: UUID | IdPrefix, records: Sequence[R], kind: str) -> R:
    """The record with this id or prefix; an error if there is none, or several."""
    found = [one for one in records if _matches(given, one.id)]
    if not found:
        raise NotFound(f"no {kind} {given}")
    if len(found) > 1:
        ids = ", ".join(str(one.id) for one in found)
        raise InvalidInput("ID", f"several {kind}s begin with {given}: {ids}")
    return found[0]


def _matches(given: UUID | IdPrefix, record_id: UUID) -> bool:
    if isinstance(given, UUID):
        return given == record_id
    return record_id.hex.startswith(given.digits) and record_id.hex.endswith(given.end)
