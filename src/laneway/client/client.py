"""The verbs of an application on its jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar, Unpack, overload
from uuid import UUID

from laneway.client import decisions
from laneway.client.catalog import Catalog, KnownHandlers
from laneway.client.flow_verbs import FlowVerbs
from laneway.client.handle import JobHandle, SyncJobHandle, claim_types
from laneway.client.job_end import end_of
from laneway.client.limits import LimitHolder
from laneway.client.outcome import outcome_of
from laneway.client.spec import (
    Given,
    JobOptions,
    NewJobSpec,
    check_options,
    encode_off_loop,
    has_unique,
    is_linked,
    make_entries,
    make_job,
    read_requests,
    types_of,
)
from laneway.domain import verb_rules
from laneway.domain.claim import parse_job_id
from laneway.domain.job import Job, NewJob
from laneway.domain.states import Status
from laneway.domain.webhook import check_submitted_type
from laneway.errors import (
    DatabaseUnavailable,
    LanewayError,
    NotFound,
    SchemaMismatch,
    UnsuitableDatabase,
)
from laneway.observability import tracing
from laneway.observability.safe_logger import SafeLogger
from laneway.store import jobs, local_notify

# Modules that need the database driver are imported where they are used: the driver takes a fifth
# of the time to import Laneway.
if TYPE_CHECKING:
    from laneway.client.sync import SyncClient
    from laneway.config.settings import Settings
    from laneway.store.caller_connection import CallerConnection
    from laneway.store.database import AsyncConn, Database, Runner
    from laneway.store.jobs import SubmitResult
    from laneway.store.statement import Statement
    from laneway.store.waker import Waker

log = SafeLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")
P = ParamSpec("P")

_CONNECT_PAUSES_S: Final = (0.05, 0.1, 0.2, 0.4)
_CLOSE_TIMEOUT_S: Final = 1.0
_STATUS: Final = {status.value: status for status in Status}


class Client(LimitHolder, FlowVerbs):
    """Submits jobs, waits for them and cancels them, in one event loop; `sync` needs none.

    `conn=` runs a verb on the caller's connection, inside its transaction, without committing:
    psycopg, asyncpg, SQLAlchemy or Django, sync or async. A sync connection is used in the
    calling thread and blocks it.
    """

    # The cure that a TimeoutError of `wait` names, if not `jobs explain`.
    wait_cure: str | None = None

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
        """The database that holds the jobs."""
        return self._given() if callable(self._given) else self._given

    @cached_property
    def _waker(self) -> Waker:
        from laneway.store.waker import Waker

        return Waker(self.database, self.settings.wake_interval_ms)

    @cached_property
    def sync(self) -> SyncClient:
        """The same verbs without an event loop."""
        from laneway.client.sync import SyncClient

        return SyncClient(self)

    async def close(self) -> None:
        """Sends the events and wake-ups still due, if that is possible within a second.

        Does not close the database.
        """
        sends = self.__dict__.pop("_event_sends", None)
        if sends is not None:
            # A caller that was cancelled has left its statement running: it may wait for a lock.
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                    await sends.drain()
            await sends.close()
        if "_waker" in self.__dict__:
            await self._waker.close()
        if "sync" in self.__dict__:
            await asyncio.to_thread(self.sync.close)

    async def submit(
        self,
        job_type: str,
        payload: object = None,
        *,
        conn: object = None,
        wake: bool | None = None,
        **options: Unpack[JobOptions],
    ) -> JobHandle[Any]:
        """Submits one job, or returns the live job with the same `unique_key`.

        Options: priority, run_at or delay, unique_key, unique_for (seconds: also after that job
        has ended), unique_by (arguments that form the key; default all), workspace, tags,
        max_retries, created_by, concurrency_key, after (jobs that must complete first),
        after_failure (if one of them fails: "cancel", "run" or "hold").

        Workers are woken after the commit. With `conn=` they find the job at their next poll,
        unless `wake=True`. After DatabaseUnavailable the job may or may not be stored: submit
        again with a `unique_key` to get exactly one.
        """
        run = self._run if conn is None else _borrow(conn).run
        with tracing.sending(check_submitted_type(job_type)) as sent:
            check_options(options)
            job = await self._make(run, job_type, payload, options)
            if conn is None and wake is not False:
                handle = await self._submit_and_wake(job)
            else:
                handle = self._handle(job, await run(jobs.submit(job, wake=bool(wake))))
            sent.record(handle.id, duplicate=handle.duplicate)
        return handle

    async def prepare(
        self, job_type: str, payload: object = None, **options: Unpack[JobOptions]
    ) -> NewJob:
        """The job that `submit` would store, checked but not stored; the options are the same."""
        check_options(options)
        return await self._make(self._run, job_type, payload, options)

    async def submit_prepared(self, job: NewJob) -> JobHandle[Any]:
        """Submits a job that `prepare` made, under the id that it has already."""
        with tracing.sending(job.job_type) as sent:
            handle = await self._submit_and_wake(job)
            sent.record(handle.id, duplicate=handle.duplicate)
        return handle

    async def _submit_and_wake(self, job: NewJob) -> JobHandle[Any]:
        made = await self._waker.submit(job) if self.settings.listen else None
        if made is not None:
            return self._handle(job, made)
        handle = self._handle(job, await self._run(jobs.submit(job)))
        self.wake([handle])
        return handle

    def _handle(self, job: NewJob, made: SubmitResult) -> JobHandle[Any]:
        return JobHandle(made.id, job.job_type, _STATUS[made.status], made.duplicate, self)

    async def _make(
        self,
        run: Callable[[Statement[Any]], Awaitable[Any]],
        job_type: str,
        payload: object,
        options: JobOptions,
    ) -> NewJob:
        await self._catalog.refresh([check_submitted_type(job_type)], run)
        check = self._catalog.check_of(job_type)
        arguments = await encode_off_loop(check, self._limits, payload)
        trace = tracing.traceparent()
        return make_job(
            self._catalog, self._limits, job_type, arguments, traceparent=trace, **options
        )

    @overload
    async def submit_many(
        self, new: Iterable[NewJobSpec[R]], *, conn: object = None, wake: bool | None = None
    ) -> list[JobHandle[R]]: ...
    @overload
    async def submit_many(
        self, new: Iterable[Given], *, conn: object = None, wake: bool | None = None
    ) -> list[JobHandle[Any]]: ...
    async def submit_many(
        self, new: Iterable[Given], *, conn: object = None, wake: bool | None = None
    ) -> list[JobHandle[Any]]:
        """Submits up to 1,000 jobs by COPY, all or none; returns handles in the same order.

        Each is `ingest.job(path="a.pdf")`, a NewJobSpec, `(job_type, payload)`,
        `(job_type, payload, {"priority": 5})`, or a mapping with the names of `submit`.
        """
        from laneway.store.batch import Batch, store_batch, submit_batch

        requests = read_requests(new, self._limits)
        if not requests:
            return []
        job_types = types_of(requests)
        run = self._run if conn is None else _borrow(conn).run
        await self._catalog.refresh(job_types, run)
        is_keyed = any(job.options.get("unique_key") is not None for job in requests)
        is_unique, linked = has_unique(self._catalog, requests), is_linked(requests)
        with tracing.sending(*job_types, count=len(requests)):
            entries = make_entries(self._catalog, self._limits, requests)
            if conn is None:
                batch = Batch(len(requests), job_types, is_keyed, entries, is_unique, linked)
                made = await self._connected(lambda own: submit_batch(own, batch, self.settings))
                local_notify.publish()
            else:
                # Make all entries first: an invalid one must not break the caller's transaction.
                own = _borrow(conn)
                ready = await asyncio.to_thread(list, entries) if own.is_async else list(entries)
                batch = Batch(len(requests), job_types, is_keyed, ready, is_unique, linked)
                made = await store_batch(own, batch)
        handles: list[JobHandle[Any]] = [
            JobHandle(job_id, job.job_type, _STATUS[status], duplicate, self, job.decode)
            for job, (job_id, status, duplicate) in zip(requests, made, strict=True)
        ]
        if conn is None and wake is not False:
            self.wake(handles)
        elif conn is not None and wake and (woken := claim_types(handles)):
            from laneway.store import notify

            await _borrow(conn).run(notify.wake(notify.wake_message(woken), alone=False))
        return handles

    def wake(self, made: Iterable[JobHandle[Any] | SyncJobHandle[Any]]) -> None:
        """Wakes workers for jobs submitted with `conn=`, once that transaction is committed."""
        if woken := claim_types(made):
            self._wake(woken)

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

    async def get(self, job_id: UUID | str, *, conn: object = None) -> Job:
        """The job with its newest attempts; with `conn=` also if that transaction submitted it."""
        wanted = parse_job_id(job_id)
        run = self.database.run if conn is None else _borrow(conn).run
        job = await run(jobs.get(wanted))
        if job is None:
            raise NotFound(f"no job {wanted}")
        attempts = await run(jobs.get_attempts(wanted))
        return replace(job, attempts=tuple(attempts))

    async def cancel(
        self,
        job_id: UUID | str,
        reason: str | None = None,
        by: str | None = None,
        *,
        conn: object = None,
    ) -> Status:
        """Cancels a waiting job at once; asks the worker of a running job to stop.

        Returns the new state of the job; raises Refused if it had ended before.
        """
        wanted = parse_job_id(job_id)
        verb_rules.check_actor(by, reason)
        async with self._transaction(conn) as runner:
            found = await decisions.cancel(runner, wanted, by, reason)
        status = verb_rules.after_cancel(wanted, found.found_in, found.concerns)
        if conn is None and found.concerns is not None:
            await self._notify(f"cancel {found.concerns}")
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
        """Approves a job; raises Refused if it awaits no approval, or `by` may not approve it.

        `seal` identifies the version that the approver saw; raises Refused if the job changed.
        """
        wanted = parse_job_id(job_id)
        verb_rules.check_decision(by, comment)
        async with self._transaction(conn) as runner:
            decided = await decisions.approve(runner, wanted, by, comment, seal)
        verb_rules.after_decision(wanted, decided.found_in, decided.refusal, "approve")
        if conn is None:
            self._wake([str(decided.job_type)])

    async def reject(
        self, job_id: UUID | str, by: str, reason: str, *, conn: object = None
    ) -> None:
        """Cancels a job that awaits an approval; raises Refused if it does not."""
        wanted = parse_job_id(job_id)
        verb_rules.check_rejection(by, reason)
        async with self._transaction(conn) as runner:
            decided = await decisions.reject(runner, wanted, by, reason)
        verb_rules.after_decision(wanted, decided.found_in, decided.refusal, "reject")

    async def wait(
        self,
        job_id: UUID | str,
        timeout: float | timedelta | None = None,
        *,
        decode: Callable[[str], Any] | None = None,
    ) -> Any:
        """The job's result as JSON, or as `decode` reads it from its JSON text.

        JobFailed if it fails or is cancelled, TimeoutError after `timeout`. While the database is
        unreachable, it keeps waiting.
        """
        wanted = parse_job_id(job_id)
        ended = await end_of(self.database, wanted, timeout, self.wait_cure)
        return outcome_of(wanted, *ended, decode, self._limits)

    @asynccontextmanager
    async def _transaction(self, conn: object) -> AsyncIterator[Runner]:
        """Runs statements in one transaction: the caller's, or a new one that it commits."""
        if conn is not None:
            yield _borrow(conn)
            return
        async with self.database.transaction() as transaction:
            yield transaction

    async def _run(self, statement: Statement[T]) -> T:
        from laneway.store.database import run_on

        result = await self._connected(lambda conn: run_on(conn, statement))
        local_notify.publish(statement.name)
        return result

    async def _connected(self, work: Callable[[AsyncConn], Awaitable[T]]) -> T:
        """Runs `work` on a pooled connection; retries only while nothing can have been sent."""
        pauses = iter(_CONNECT_PAUSES_S)
        while True:
            is_connected = False
            try:
                async with self.database.connection() as conn:
                    is_connected = True
                    return await work(conn)
            except (SchemaMismatch, UnsuitableDatabase):
                raise
            except DatabaseUnavailable:
                pause = None if is_connected else next(pauses, None)
                if pause is None:
                    raise
                await asyncio.sleep(pause)

    def _wake(self, job_types: Iterable[str]) -> None:
        if self.settings.listen:
            self._waker.wake(job_types)

    async def _notify(self, message: str) -> None:
        # A failure is harmless: the cancel is stored, and the worker's next heartbeat returns it.
        if self.settings.listen:
            from laneway.store import notify

            try:
                await self.database.run(notify.wake(message))
            except LanewayError as error:
                log.debug("notification failed (%s): %s", message, error)


def _borrow(conn: object) -> CallerConnection:
    from laneway.store.caller_connection import borrow

    return borrow(conn)
