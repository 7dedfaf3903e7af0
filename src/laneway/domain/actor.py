"""Who acts, and through which door."""

from __future__ import annotations

from typing import Final, Literal, Self
from uuid import UUID

# `ui`: a browser's session; a token over HTTP is `http`, unless its client says what it is.
Door = Literal["http", "ui", "grpc", "cli", "mcp", "python"]
DEFAULT_DOOR: Final[Door] = "python"


class Actor(str):
    """A name as rows keep it (`by`, `created_by`), with what the audit wants to know beside it."""

    __slots__ = ("address", "door", "principal_id", "request_id")

    door: Door
    principal_id: UUID | None
    request_id: str | None
    address: str | None

    def __new__(
        cls,
        name: str,
        *,
        door: Door = DEFAULT_DOOR,
        principal_id: UUID | None = None,
        request_id: str | None = None,
        address: str | None = None,
    ) -> Self:
        actor = super().__new__(cls, name)
        actor.door = door
        actor.principal_id = principal_id
        actor.request_id = request_id
        actor.address = address
        return actor

    @classmethod
    def of(cls, by: str) -> Actor:
        """Whoever a plain name stands for came through Python."""
        return by if isinstance(by, Actor) else cls(by)
