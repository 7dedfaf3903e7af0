"""The actor of a change, and the interface that it used: its door."""

from __future__ import annotations

from typing import Final, Literal, Self
from uuid import UUID, uuid4

# `ui` is a browser's session. A token over HTTP is `http`, unless its client names another door.
Door = Literal["http", "ui", "grpc", "cli", "mcp", "python"]
DEFAULT_DOOR: Final[Door] = "python"
# In the scope of an HTTP request that the server makes to itself: the id of the outer request.
REQUEST_ID: Final = "laneway.request_id"
# The server's own request ids begin with it. Request ids of clients may not contain a colon.
_OWN_REQUEST: Final = "lw:"


def new_request_id() -> str:
    """A request id that the server made, recognizable by its prefix."""
    return f"{_OWN_REQUEST}{uuid4().hex}"


def is_own_request_id(text: str) -> bool:
    return text.startswith(_OWN_REQUEST)


class Actor(str):
    """An actor's name as rows store it (`by`, `created_by`), with details for the audit."""

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
        """The actor of a plain name: its door is Python."""
        return by if isinstance(by, Actor) else cls(by)
