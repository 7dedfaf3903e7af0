"""Runs a POST with an Idempotency-Key once: the same request again gets the same response.

The change and its response are committed together. Only successful requests are stored: a refused
request has changed nothing and may be sent again.

A change too long for one transaction begins in one and ends in another. No connection is held in
between, and a repeated request continues from what was begun.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Annotated

from fastapi import Depends, Header, Request, Response

from laneway.api.http.auth import Caller, caller
from laneway.domain.text import check_text
from laneway.errors import LanewayError, NotFound, Refused
from laneway.store import idempotency as store
from laneway.store.database import Database
from laneway.store.idempotency import KeptResponse

Apply = Callable[[Database], Awaitable[Response]]
Begin = Callable[[Database], Awaitable[str]]
Undo = Callable[[Database, str], Awaitable[object]]


class IdempotencyMismatch(LanewayError):
    """The key was used for another request.

    Cure: Send each `Idempotency-Key` with one request only, or with exactly the same one.
    """

    code = "idempotency_mismatch"


class IdempotencyUnderWay(LanewayError):
    """The first request with the key has no response yet.

    Cure: Wait for a moment, then send the same request again.
    """

    code = "idempotency_under_way"


class IdempotencyGuard:
    """One request, which runs at most once if it has a key."""

    def __init__(self, who: Caller, key: str | None, digest: bytes) -> None:
        self._who = who
        self._key = key
        self._digest = digest
        self._is_begun = False

    @property
    def has_key(self) -> bool:
        return self._key is not None

    async def run(self, apply: Apply, after: Callable[[], object] | None = None) -> Response:
        """Return the response of `apply`, or the stored one of an earlier request.

        `apply` must use only the database it is given. `after` is called once it is committed.
        """
        if self._key is None:
            response = await apply(self._who.database)
        else:
            replayed, response = await self._once(self._key, apply)
            if replayed:
                return response
        if after is not None:
            after()
        return response

    async def begin(self, begin: Begin) -> Response | str:
        """Run the first part of a request with a key; return the result of `begin`, new or stored.

        `run` ends it, `give_up` undoes it. Returns the response if the request has ended already.
        """
        key = self._given
        async with self._who.database.joined() as db:
            kept = await self._kept(db, key)
            if kept is not None and not kept.is_begun:
                return _replay(kept)
            begun = await begin(db) if kept is None else kept.body
            if kept is None:
                await self._keep(db, key, KeptResponse(self._digest, None, begun, None))
        self._is_begun = True
        return begun

    async def give_up(self, undo: Undo) -> Response | None:
        """Undo what was begun, so that it may be sent again; return a response given since."""
        key = self._given
        async with self._who.database.joined() as db:
            kept = await self._kept(db, key, waits=True)
            if kept is not None and not kept.is_begun:
                return _replay(kept)
            if kept is not None:
                await undo(db, kept.body)
                await db.run(store.delete_unfinished(self._who.access.principal_id, key))
        return None

    @property
    def _given(self) -> str:
        if self._key is None:
            raise RuntimeError("only a request with an Idempotency-Key can run in parts")
        return self._key

    async def _once(self, key: str, apply: Apply) -> tuple[bool, Response]:
        refusal: NotFound | Refused | None = None
        response = Response()
        async with self._who.database.joined() as db:
            kept = await self._kept(db, key, waits=self._is_begun)
            if kept is not None and not kept.is_begun:
                return True, _replay(kept)
            if kept is None and self._is_begun:
                raise Refused("another request with this Idempotency-Key undid it: send it again")
            try:
                response = await apply(db)
            except (NotFound, Refused) as error:
                # As in `audited`: commit what the database corrected on the way.
                refusal = error
            else:
                body = bytes(response.body).decode()
                location = response.headers.get("location")
                await self._keep(
                    db, key, KeptResponse(self._digest, response.status_code, body, location)
                )
        if refusal is not None:
            raise refusal
        return False, response

    async def _kept(self, db: Database, key: str, *, waits: bool = False) -> KeptResponse | None:
        """The stored response of this request; the key stays locked until the transaction ends."""
        principal = self._who.access.principal_id
        if waits:
            await db.run(store.wait_for_lock(principal, key))
        elif not await db.run(store.lock(principal, key)):
            raise IdempotencyUnderWay("the first request with this Idempotency-Key is in progress")
        kept = await db.run(store.read(principal, key))
        if kept is not None and kept.digest != self._digest:
            raise IdempotencyMismatch("this Idempotency-Key was used for another request")
        return kept

    async def _keep(self, db: Database, key: str, response: KeptResponse) -> None:
        await db.run(store.save(self._who.access.principal_id, key, response))


def _replay(kept: KeptResponse) -> Response:
    headers = {"Idempotent-Replayed": "true"}
    if kept.location is not None:
        headers["Location"] = kept.location
    return Response(kept.body, kept.status or 200, headers, media_type="application/json")


async def idempotency_guard(
    request: Request,
    who: Annotated[Caller, Depends(caller)],
    key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            min_length=1,
            max_length=255,
            description="Remembered for 24 hours: the same request again gets the same response",
        ),
    ] = None,
) -> IdempotencyGuard:
    """A dependency of POST routes."""
    if key is None:
        return IdempotencyGuard(who, None, b"")
    check_text(key, "Idempotency-Key", max_bytes=512)
    target = f"{request.method} {request.url.path}\n".encode()
    return IdempotencyGuard(who, key, sha256(target + await request.body()).digest())


Idempotent = Annotated[IdempotencyGuard, Depends(idempotency_guard)]
