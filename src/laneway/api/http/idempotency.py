"""A POST with an Idempotency-Key is done once: the same request again gets the same answer.

What the request does and its answer are committed together, so that neither is ever there without
the other. Only what was done is kept: a request that was refused has changed nothing, and may be
sent again.

What takes longer than a transaction should is begun in one and answered in another; in between no
connection is held, and whoever sends the request again goes on from what was begun.
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

Act = Callable[[Database], Awaitable[Response]]
Begin = Callable[[Database], Awaitable[str]]
TakeBack = Callable[[Database, str], Awaitable[object]]


class IdempotencyMismatch(LanewayError):
    """The key was used for another request."""

    code = "idempotency_mismatch"


class IdempotencyUnderWay(LanewayError):
    """The first request with the key has not been answered yet."""

    code = "idempotency_under_way"


class IdempotencyGuard:
    """One request, done at most once if it has a key."""

    def __init__(self, who: Caller, key: str | None, digest: bytes) -> None:
        self._who = who
        self._key = key
        self._digest = digest
        self._is_begun = False

    @property
    def has_key(self) -> bool:
        return self._key is not None

    async def answer(self, act: Act, after: Callable[[], object] | None = None) -> Response:
        """What `act` answers, or answered before; `after` is called when it was done and stands.

        `act` runs everything on the database it is given.
        """
        if self._key is None:
            answer = await act(self._who.database)
        else:
            replayed, answer = await self._once(self._key, act)
            if replayed:
                return answer
        if after is not None:
            after()
        return answer

    async def begin(self, act: Begin) -> Response | str:
        """Does the first part of a request with a key; answers what `act` did, or did before.

        `answer` ends it, `give_up` takes it back. The answer, if it has ended already.
        """
        key = self._given
        async with self._who.database.joined() as db:
            kept = await self._kept(db, key)
            if kept is not None and not kept.is_begun:
                return _replay(kept)
            begun = await act(db) if kept is None else kept.body
            if kept is None:
                await self._keep(db, key, KeptResponse(self._digest, None, begun, None))
        self._is_begun = True
        return begun

    async def give_up(self, act: TakeBack) -> Response | None:
        """Takes back what was begun: it may be sent again. The answer, if one was given since."""
        key = self._given
        async with self._who.database.joined() as db:
            kept = await self._kept(db, key, waits=True)
            if kept is not None and not kept.is_begun:
                return _replay(kept)
            if kept is not None:
                await act(db, kept.body)
                await db.run(store.forget(self._who.access.principal_id, key))
        return None

    @property
    def _given(self) -> str:
        if self._key is None:
            raise RuntimeError("only a request with a key is done in parts")
        return self._key

    async def _once(self, key: str, act: Act) -> tuple[bool, Response]:
        refusal: NotFound | Refused | None = None
        answer = Response()
        async with self._who.database.joined() as db:
            kept = await self._kept(db, key, waits=self._is_begun)
            if kept is not None and not kept.is_begun:
                return True, _replay(kept)
            if kept is None and self._is_begun:
                raise Refused(
                    "another request with this Idempotency-Key took it back: send it again"
                )
            try:
                answer = await act(db)
            except (NotFound, Refused) as error:
                # As in `audited`: what the database put right on the way stands.
                refusal = error
            else:
                body = bytes(answer.body).decode()
                said = answer.headers.get("location")
                await self._keep(
                    db, key, KeptResponse(self._digest, answer.status_code, body, said)
                )
        if refusal is not None:
            raise refusal
        return False, answer

    async def _kept(self, db: Database, key: str, *, waits: bool = False) -> KeptResponse | None:
        """What was kept for this request; until the transaction ends nobody else asks."""
        principal = self._who.access.principal_id
        if waits:
            await db.run(store.wait_for_lock(principal, key))
        elif not await db.run(store.lock(principal, key)):
            raise IdempotencyUnderWay("the first request with this Idempotency-Key is under way")
        kept = await db.run(store.read(principal, key))
        if kept is not None and kept.digest != self._digest:
            raise IdempotencyMismatch("this Idempotency-Key was used for another request")
        return kept

    async def _keep(self, db: Database, key: str, answer: KeptResponse) -> None:
        await db.run(store.keep(self._who.access.principal_id, key, answer))


def _replay(kept: KeptResponse) -> Response:
    headers = {"Idempotent-Replayed": "true"}
    if kept.location is not None:
        headers["Location"] = kept.location
    return Response(kept.body, kept.status or 200, headers, media_type="application/json")


async def once(
    request: Request,
    who: Annotated[Caller, Depends(caller)],
    key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            min_length=1,
            max_length=255,
            description="Remembered for 24 hours: the same request again gets the same answer",
        ),
    ] = None,
) -> IdempotencyGuard:
    """A dependency of POST routes."""
    if key is None:
        return IdempotencyGuard(who, None, b"")
    check_text(key, "Idempotency-Key", max_bytes=512)
    target = f"{request.method} {request.url.path}\n".encode()
    return IdempotencyGuard(who, key, sha256(target + await request.body()).digest())


OnceOnly = Annotated[IdempotencyGuard, Depends(once)]
