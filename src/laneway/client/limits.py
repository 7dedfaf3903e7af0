"""Limits held outside of jobs, such as in a web request: leased, so that a crash frees them."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4

from laneway.domain.held_limits import count_held, mark_held
from laneway.domain.job import check_priority
from laneway.domain.limit import Limit, check_limit_name
from laneway.errors import DatabaseUnavailable, InvalidInput, LanewayError, MissingRight
from laneway.observability.safe_logger import SafeLogger
from laneway.store import holds
from laneway.store.missing_limits import NONE, create

if TYPE_CHECKING:
    from laneway.client.catalog import KnownHandlers
    from laneway.store.database import Database

log = SafeLogger("laneway")

LEASE_S: Final = 15.0
RENEW_S: Final = 4.0
FIRST_S: Final = 0.05
LONGEST_S: Final = 0.25
NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


class LimitHolds:
    """The limits that this process holds outside of jobs. Belongs to one event loop at a time."""

    def __init__(
        self, database: Callable[[], Database], declared: Mapping[str, Limit] = NONE
    ) -> None:
        """A missing limit is created as declared, otherwise unbounded."""
        self._database = database
        self._declared = declared
        self._holder = holds.Holder(uuid4(), socket.gethostname())
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reset()

    def _reset(self) -> None:
        """Starts without holds: an earlier loop releases its holds there, or they lapse."""
        self._held: set[UUID] = set()
        self._known: set[str] = set()
        self._renewing: asyncio.Task[None] | None = None
        # One caller at a time asks for the same limits: first come, first served.
        self._queues: dict[tuple[str, ...], asyncio.Lock] = {}
        self._freed = asyncio.Event()

    async def acquire(
        self,
        names: Sequence[str],
        priority: int,
        timeout: float | None,
        already_held: Mapping[str, int] = NOTHING,
    ) -> UUID:
        """Waits until one of each limit is held; raises TimeoutError after `timeout` seconds.

        `already_held` counts the caller's holds of each limit, which it releases only afterwards.
        """
        if not names:
            raise InvalidInput("limit", "name at least one limit")
        wanted = tuple(sorted({check_limit_name(name) for name in names}))
        check_priority(priority)
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            self._reset()
        await self._check_self_deadlock(already_held)
        await self._create_missing(set(wanted) - self._known)
        hold_id = uuid4()
        try:
            async with asyncio.timeout(timeout) as waiting:
                async with self._queues.setdefault(wanted, asyncio.Lock()):
                    try:
                        await self._poll(hold_id, wanted, -priority)
                    except InvalidInput:
                        # A known limit may have been deleted, or the database replaced.
                        self._known.difference_update(wanted)
                        await self._create_missing(set(wanted))
                        await self._poll(hold_id, wanted, -priority)
        except TimeoutError as error:
            await self.release(hold_id)
            if not waiting.expired():
                raise
            raise TimeoutError(await self._timeout_message(wanted, timeout)) from error
        except BaseException as error:
            if isinstance(error, InvalidInput):
                self._known.difference_update(wanted)
            # The hold may have been granted although the answer was lost.
            await self.release(hold_id)
            raise
        self._held.add(hold_id)
        if self._renewing is None:
            self._renewing = loop.create_task(self._renew())
        return hold_id

    async def _check_self_deadlock(self, held: Mapping[str, int]) -> None:
        """Refuses a caller that already holds all of a limit, as ctx.limit does."""
        if not held:
            return
        for limit in await self._database().run(holds.find_holders(list(held))):
            if limit.max_concurrent is not None and held[limit.name] >= limit.max_concurrent:
                raise InvalidInput(
                    "limit",
                    f"the surrounding code already holds {limit.name}, and its max_concurrent is"
                    f" {limit.max_concurrent}: it would wait for itself",
                )

    async def _create_missing(self, names: set[str]) -> None:
        if not names:
            return
        found = {one.name for one in await self._database().run(holds.find_holders(list(names)))}
        # A database role that only submits may not create limits: then the hold says how to.
        with suppress(MissingRight):
            by = f"process on {self._holder.host}"
            await create(self._database(), names - found, by, self._declared)
        self._known |= names

    async def _timeout_message(self, names: Sequence[str], timeout: float | None) -> str:
        message = f"limit {', '.join(names)}: no room within {timeout or 0:g} s"
        try:
            found = await self._database().run(holds.find_holders(names))
        except LanewayError:
            return message
        return "; ".join([message, *map(str, found)])

    async def release(self, hold_id: UUID) -> None:
        """Releases a hold, even if the caller is cancelled; without a database its lease lapses."""
        self._held.discard(hold_id)
        if not self._held and self._renewing is not None:
            self._renewing.cancel()
            self._renewing = None
        dropping = asyncio.ensure_future(self._drop(hold_id))
        try:
            await asyncio.shield(dropping)
        except asyncio.CancelledError:
            await asyncio.wait({dropping})
            raise

    async def _drop(self, hold_id: UUID) -> None:
        with suppress(DatabaseUnavailable):
            await self._database().run(holds.drop([hold_id]))
        self._freed.set()

    async def _poll(self, hold_id: UUID, names: tuple[str, ...], rank: int) -> None:
        wait_s = FIRST_S
        while True:
            self._freed.clear()
            grant = await self._database().run(
                holds.hold(hold_id, self._holder, names, rank, LEASE_S)
            )
            if grant.answer == "granted":
                return
            if grant.wait_s is not None:
                delay_s = min(grant.wait_s, LONGEST_S)
            else:
                delay_s, wait_s = wait_s, min(wait_s * 1.5, LONGEST_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(delay_s * random.uniform(1.0, 1.2)):
                    await self._freed.wait()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                lost = await self._database().run(holds.renew(self._held, LEASE_S))
            except LanewayError as error:
                log.warning("limits held outside of jobs could not be renewed: %s", error)
                continue
            for hold_id in lost & self._held:
                self._held.discard(hold_id)
                log.warning(
                    "a limit held outside of jobs was lost: it was not renewed for %.0f s,"
                    " because the event loop was blocked or the database unreachable",
                    LEASE_S,
                )


class LimitHolder:
    """Adds `limit` to a client: limits held outside of jobs."""

    if TYPE_CHECKING:
        handlers: KnownHandlers | None

        @property
        def database(self) -> Database: ...

    @cached_property
    def limit_holds(self) -> LimitHolds:
        """The limits that this process holds outside of jobs."""
        declared = NONE if self.handlers is None else self.handlers.limits
        return LimitHolds(lambda: self.database, declared)

    @asynccontextmanager
    async def limit(
        self, *names: str, priority: int = 0, timeout: float | None = None
    ) -> AsyncIterator[None]:
        """Holds one of each limit inside `async with`, in turn with jobs that want them.

        For code that is not a job; a handler uses `ctx.limit`. Raises TimeoutError if there is no
        room in time, and InvalidInput if the surrounding code holds all of a limit: it would wait
        for itself.
        """
        already_held = count_held(id(self), names)
        held = await self.limit_holds.acquire(names, priority, timeout, already_held)
        try:
            with mark_held(id(self), names):
                yield
        finally:
            await self.limit_holds.release(held)
