"""Who acts, and through which door."""

from __future__ import annotations

from typing import Final, Literal, Self
from uuid import UUID, uuid4

# `ui`: a browser's session; a token over HTTP is `http`, unless its client says what it is.
Door = Literal["http", "ui", "grpc", "cli", "mcp", "python"]
DEFAULT_DOOR: Final[Door] = "python"
# In the scope of an HTTP request that the server makes to itself: the id of the outer one.
REQUEST_ID: Final = "laneway.request_id"
# Begins the request ids that the server makes; no request may bring one with a colon.
_OWN_REQUEST: Final = "lw:"


def new_request_id() -> str:
    """An id that shows by its form that the server made it."""
    return f"{_OWN_REQUEST}{uuid4().hex}"


def is_own_request_id(text: str) -> bool:
    return text.startswith(_OWN_REQUEST)


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
