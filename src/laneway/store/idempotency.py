"""Responses to requests with an Idempotency-Key, as statements of the request's transaction."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from laneway.store.statement import Statement, nothing, scalar


class KeptResponse(NamedTuple):
    """The first response, and the digest of its request.

    Without a status the request has only begun; `body` then holds its progress.
    """

    digest: bytes
    status: int | None
    body: str
    location: str | None

    @property
    def is_begun(self) -> bool:
        return self.status is None


def lock(principal_id: UUID, key: str) -> Statement[bool]:
    """Locks the key if it is free; returns whether this transaction has it."""
    return Statement("idempotency/lock_key", scalar, {"principal": principal_id, "key": key})


def wait_for_lock(principal_id: UUID, key: str) -> Statement[None]:
    """Locks the key, after waiting for other transactions that have it."""
    return Statement("idempotency/await_key", nothing, {"principal": principal_id, "key": key})


def read(principal_id: UUID, key: str) -> Statement[KeptResponse | None]:
    return Statement(
        "idempotency/read_response",
        lambda rows: KeptResponse(bytes(rows[0][0]), *rows[0][1:]) if rows else None,
        {"principal": principal_id, "key": key},
    )


def save(principal_id: UUID, key: str, response: KeptResponse) -> Statement[None]:
    return Statement(
        "idempotency/save_response",
        nothing,
        {"principal": principal_id, "key": key, **response._asdict()},
    )


def delete_unfinished(principal_id: UUID, key: str) -> Statement[None]:
    """Delete a request that has only begun, so that it may start again."""
    return Statement(
        "idempotency/delete_unfinished", nothing, {"principal": principal_id, "key": key}
    )
