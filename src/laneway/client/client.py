"""The verbs of an application on its jobs."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar
from uuid import UUID

from laneway.client import acts
from laneway.client.catalog import Catalog, KnownHandlers
from laneway.client.handle import JobHandle
from laneway.client.limits import LimitHolder
from laneway.client.spec import Given, encode_aside, make_entries, make_job, read_requests, types_of
from laneway.config.settings import Settings
from laneway.domain import verb_rules
from laneway.domain.approval import analysis_of
from laneway.domain.job import DEFAULT_WORKSPACE, Job, NewJob
from laneway.domain.lane import check_job_type
from laneway.domain.payload import decode
from laneway.domain.redaction import redact
from laneway.domain.states import TERMINAL, Status
from laneway.domain.text import escape_text
from laneway.errors import (
    DatabaseUnavailable,
    InvalidInput,
    JobFailed,
    LanewayError,
    NotFound,
    SchemaMismatch,
    UnsuitableDatabase,
)
from laneway.observability import tracing
from laneway.store import jobs, local_notify, notify
from laneway.store.batch import Batch, store_batch, submit_batch
from laneway.store.caller_connection import borrow
from laneway.store.database import AsyncConn, Database, Runner, run_on
from laneway.store.statement import Statement
from laneway.store.waker import Waker

if TYPE_CHECKING:
    from laneway.client.sync import SyncClient

log = logging.getLogger(__name__)

T = TypeVar("T")
A = TypeVar("A")
P = ParamSpec("P")

SHORTEST_POLL_S: Final = 0.01
LONGEST_POLL_S: Final = 0.5
_POLL_GROWTH: Final = 1.4
_ONE_LOOK_S: Final = 1.0
_PATIENCE_S: Final = (0.05, 0.1, 0.2, 0.4)
_STATUS: Final = {status.value: status for status in Status}


class Client(LimitHolder):
    """Submits jobs, waits for them, cancels them. Belongs to one event loop; `sync` to none.

    `conn=` runs a verb on a connection of the caller, inside its transaction and without
    committing: psycopg, asyncpg, SQLAlchemy or Django, sync or async. A sync connection is used in
    the calling thread and blocks it.
    """

    def __init__(
        self,
        database: Database | Callable[[], Database],
        settings: Settings,
        registry: KnownHandlers | None = None,
    ) -> None:
        """A function for `database` is called when the first verb needs it."""
        self._given = database
        self.settings = settings
        self.handlers = registry
        self._limits = settings.payload_limits
        self._catalog = Catalog(registry)

    @cached_property
    def database(self) -> Database:
        """Where the jobs are."""
        return self._given if isinstance(self._given, Database) else self._given()

    @cached_property
    def _waker(self) -> Waker:
        return Waker(self.database, self.settings.wake_interval_ms)

    @cached_property
    def sync(self) -> SyncClient:
        """The same verbs without an event loop."""
        from laneway.client.sync import SyncClient

        return SyncClient(self)

    async def close(self) -> None:
        """Sends what wake-ups are still due; the database stays with whoever opened it."""
        if "_waker" in self.__dict__:
            await self._waker.close()
        if "sync" in self.__dict__:
            await asyncio.to_thread(self.sync.close)

    async def submit(
        self,
        job_type: str,
        payload: object = None,
        *,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: float | timedelta | None = None,
        unique_key: str | None = None,
        workspace: str = DEFAULT_WORKSPACE,
        tags: Sequence[str] = (),
        max_retries: int | None = None,
        created_by: str | None = None,
        concurrency_key: str | None = None,
        conn: object = None,
        wake: bool | None = None,
    ) -> JobHandle:
        """Submits one job; a live job with the same `unique_key` is answered instead.

        Workers are woken after the commit. With `conn=` they find the job at their next poll,
        unless `wake=True`. DatabaseUnavailable leaves open whether the job was stored: submit
        again with a `unique_key` to be sure of one.
        """
        run = self._run if conn is None else borrow(conn).run
        with tracing.sending(check_job_type(job_type)) as sent:
            job = await self._make(
                run,
                job_type,
                payload,
                priority=priority,
                run_at=run_at,
                delay=delay,
                unique_key=unique_key,
                workspace=workspace,
                tags=tags,
                max_retries=max_retries,
                created_by=created_by,
                concurrency_key=concurrency_key,
            )
            made = await run(jobs.submit(job, wake=conn is not None and bool(wake)))
            sent.made(made.id, duplicate=made.duplicate)
        if conn is None and wake is not False and _is_claimable(made.status, made.duplicate):
            self._wake([_waits_as(job_type, made.status)])
        return JobHandle(made.id, job_type, _STATUS[made.status], made.duplicate, self)

    async def prepare(self, job_type: str, payload: object = None, **options: Any) -> NewJob:
        """A job as `submit` would store it, checked and not stored; options as there."""
        return await self._make(self._run, job_type, payload, **options)

    async def _make(
        self,
        run: Callable[[Statement[Any]], Awaitable[Any]],
        job_type: str,
        payload: object,
        **options: Any,
    ) -> NewJob:
        await self._catalog.refresh([check_job_type(job_type)], run)
        check = self._catalog.check_of(job_type)
        arguments = await encode_aside(check, self._limits, payload)
        options["traceparent"] = tracing.traceparent()
        return make_job(self._catalog, self._limits, job_type, arguments, **options)

    async def submit_many(
        self, new: Iterable[Given], *, conn: object = None, wake: bool | None = None
    ) -> list[JobHandle]:
        """Submits up to 1,000 jobs by COPY, all or none; answers in the order given.

        Each is a NewJobSpec, `(job_type, payload)`, `(job_type, payload, {"priority": 5})`, or a
        mapping with the names of `submit`.
        """
        requests = read_requests(new, self._limits)
        if not requests:
            return []
        job_types = types_of(requests)
        run = self._run if conn is None else borrow(conn).run
        await self._catalog.refresh(job_types, run)
        is_keyed = any(job[2].get("unique_key") is not None for job in requests)
        with tracing.sending(*job_types, count=len(requests)):
            entries = make_entries(self._catalog, self._limits, requests)
            if conn is None:
                batch = Batch(len(requests), job_types, is_keyed, entries)
                made = await self._on_own(lambda own: submit_batch(own, batch, self.settings))
                local_notify.ring()
            else:
                # All made beforehand: a wrong one must not harm the caller's transaction.
                own = borrow(conn)
                ready = await asyncio.to_thread(list, entries) if own.is_async else list(entries)
                made = await store_batch(own, Batch(len(requests), job_types, is_keyed, ready))
        handles = [
            JobHandle(job_id, job[0], _STATUS[status], duplicate, self)
            for job, (job_id, status, duplicate) in zip(requests, made, strict=True)
        ]
        told = {
            _waits_as(handle.job_type, handle.status)
            for handle in handles
            if _is_claimable(handle.status, handle.duplicate)
        }
        if told and conn is None and wake is not False:
            self._wake(told)
        elif told and conn is not None and wake:
            await borrow(conn).run(notify.wake(notify.wake_message(told), alone=False))
        return handles

    def wake(self, made: Iterable[JobHandle]) -> None:
        """Wakes workers for jobs submitted with `conn=`, once that transaction is committed."""
        told = {
            _waits_as(job.job_type, job.status)
            for job in made
            if _is_claimable(job.status, job.duplicate)
        }
        if told:
            self._wake(told)

    async def operate(
        self,
        verb: Callable[Concatenate[Database, P], Awaitable[A]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> A:
        """Runs a verb of laneway.control on this application's database.

        await lw.operate(limits.tune, "openai", {"max_concurrent": 4}, by="ann")
        """
        return await verb(self.database, *args, **kwargs)

    async def get(self, job_id: UUID | str) -> Job:
        """The job with its newest attempts."""
        wanted = _id(job_id)
        job = await self.database.run(jobs.get(wanted))
        if job is None:
            raise NotFound(f"no job {wanted}")
        attempts = await self.database.run(jobs.get_attempts(wanted))
        return replace(job, attempts=tuple(attempts))

    async def cancel(
        self,
        job_id: UUID | str,
        reason: str | None = None,
        by: str | None = None,
        *,
        conn: object = None,
    ) -> Status:
        """Not yet running: cancelled at once. Running: its worker is asked to stop.

        Answers the state the job is in by then; Refused when it had ended before.
        """
        wanted = _id(job_id)
        verb_rules.check_words(by, reason)
        async with self._together(conn) as runner:
            answer = await acts.cancel(runner, wanted, by, reason)
        status = verb_rules.after_cancel(wanted, answer.found_in, answer.concerns)
        if conn is None and answer.concerns is not None:
            await self._tell(f"cancel {answer.concerns}")
        return status

    async def approve(
        self,
        job_id: UUID | str,
        by: str,
        comment: str | None = None,
        *,
        seal: str | None = None,
        conn: object = None,
    ) -> None:
        """Lets a job that awaits an approval run; Refused when it does not, or `by` may not.

        `seal`: of what the approver was shown; Refused if the job is that no more.
        """
        wanted = _id(job_id)
        verb_rules.check_decision(by, comment)
        async with self._together(conn) as runner:
            answer = await acts.approve(runner, wanted, by, comment, seal)
        verb_rules.after_decision(wanted, answer.found_in, answer.refusal, "approve")
        if conn is None:
            self._wake([str(answer.job_type)])

    async def reject(
        self, job_id: UUID | str, by: str, reason: str, *, conn: object = None
    ) -> None:
        """Cancels a job that awaits an approval; Refused when it does not."""
        wanted = _id(job_id)
        verb_rules.check_rejection(by, reason)
        async with self._together(conn) as runner:
            answer = await acts.reject(runner, wanted, by, reason)
        verb_rules.after_decision(wanted, answer.found_in, answer.refusal, "reject")

    async def wait(self, job_id: UUID | str, timeout: float | None = None) -> object:
        """The job's result; JobFailed if it fails or is cancelled, TimeoutError after `timeout`.

        A database that cannot be reached is waited for as well.
        """
        wanted = _id(job_id)
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        pause = SHORTEST_POLL_S
        while True:
            trouble: DatabaseUnavailable | None = None
            left = None if deadline is None else deadline - loop.time()
            try:
                # Also `timeout=0` gets one look.
                async with asyncio.timeout(None if left is None else max(left, _ONE_LOOK_S)):
                    seen = await self.database.run(jobs.wait(wanted))
                if seen is None:
                    raise NotFound(f"no job {wanted}")
                if Status(seen[0]) in TERMINAL:
                    return self._outcome(wanted, *seen)
            except (SchemaMismatch, UnsuitableDatabase):
                raise
            except DatabaseUnavailable as error:
                trouble = error
            except TimeoutError:
                pass
            left = None if deadline is None else deadline - loop.time()
            if left is not None and left <= 0:
                raise TimeoutError(f"job {wanted} did not end within {timeout} s") from trouble
            rest = pause * random.uniform(0.8, 1.2)
            await asyncio.sleep(rest if left is None else min(rest, left))
            pause = min(LONGEST_POLL_S, pause * _POLL_GROWTH)

    def _outcome(self, job_id: UUID, status: str, result: str | None, error: str | None) -> object:
        if status == Status.COMPLETED:
            return None if result is None else decode(result, self._limits, field="result")
        told = decode(error, self._limits, field="error") if error is not None else None
        why = ""
        if isinstance(told, dict):
            why = escape_text(redact(f": {told.get('type')}: {told.get('message')}"))
        verb = "was cancelled" if status == Status.CANCELLED else "failed"
        raise JobFailed(f"job {job_id} {verb}{why}")

    @asynccontextmanager
    async def _together(self, conn: object) -> AsyncIterator[Runner]:
        """What runs is committed together; with `conn` by the caller."""
        if conn is not None:
            yield borrow(conn)
            return
        async with self.database.transaction() as transaction:
            yield transaction

    async def _run(self, statement: Statement[T]) -> T:
        answer = await self._on_own(lambda conn: run_on(conn, statement))
        local_notify.ring(statement.name)
        return answer

    async def _on_own(self, work: Callable[[AsyncConn], Awaitable[T]]) -> T:
        """Works on a connection of ours; again only if there was none yet to send anything on."""
        pauses = iter(_PATIENCE_S)
        while True:
            was_reached = False
            try:
                async with self.database.connection() as conn:
                    was_reached = True
                    return await work(conn)
            except (SchemaMismatch, UnsuitableDatabase):
                raise
            except DatabaseUnavailable:
                pause = None if was_reached else next(pauses, None)
                if pause is None:
                    raise
                await asyncio.sleep(pause)

    def _wake(self, job_types: Iterable[str]) -> None:
        if self.settings.listen:
            self._waker.wake(job_types)

    async def _tell(self, message: str) -> None:
        # The cancel is stored; the worker's next heartbeat tells it as well.
        if self.settings.listen:
            try:
                await self.database.run(notify.wake(message))
            except LanewayError as error:
                log.debug("not told (%s): %s", message, error)


def _id(job_id: UUID | str) -> UUID:
    if isinstance(job_id, UUID):
        return job_id
    try:
        return UUID(job_id)
    except (TypeError, ValueError, AttributeError):
        raise InvalidInput("id", "must be a UUID") from None


def _is_claimable(status: str, duplicate: bool) -> bool:
    return not duplicate and status != Status.AWAITING_APPROVAL


def _waits_as(job_type: str, status: str) -> str:
    """The name a worker looks for it by."""
    return analysis_of(job_type) if status == Status.PENDING else job_type
