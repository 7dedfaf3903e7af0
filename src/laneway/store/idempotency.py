"""Answers to requests with an Idempotency-Key, as statements of the transaction they belong to."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from laneway.store.statement import Statement, nothing, scalar


class KeptResponse(NamedTuple):
    """The first answer, and the digest of the request it was given to.

    Without a status the request has only begun, and `body` tells how far it came.
    """

    digest: bytes
    status: int | None
    body: str
    location: str | None

    @property
    def is_begun(self) -> bool:
        return self.status is None


def lock(principal_id: UUID, key: str) -> Statement[bool]:
    """Whether this transaction is the only one that answers the key."""
    return Statement("idempotency/lock_key", scalar, {"principal": principal_id, "key": key})


def await_turn(principal_id: UUID, key: str) -> Statement[None]:
    """Waits until this transaction is the only one that answers the key."""
    return Statement("idempotency/await_key", nothing, {"principal": principal_id, "key": key})


def read(principal_id: UUID, key: str) -> Statement[KeptResponse | None]:
    return Statement(
        "idempotency/read_answer",
        lambda rows: KeptResponse(bytes(rows[0][0]), *rows[0][1:]) if rows else None,
        {"principal": principal_id, "key": key},
    )


def keep(principal_id: UUID, key: str, answer: KeptResponse) -> Statement[None]:
    return Statement(
        "idempotency/keep_answer",
        nothing,
        {"principal": principal_id, "key": key, **answer._asdict()},
    )


def forget(principal_id: UUID, key: str) -> Statement[None]:
    """What has begun may begin anew."""
    return Statement("idempotency/forget_begun", nothing, {"principal": principal_id, "key": key})
