"""The client without an event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload
from weakref import WeakSet

from laneway.client.client import Client
from laneway.client.flow import SyncFlowHandle
from laneway.client.flow_verbs import new_draft
from laneway.client.handle import JobHandle, SyncJobHandle
from laneway.client.portal import Portal
from laneway.client.spec import Given, NewJobSpec
from laneway.domain.current_claim import is_on_loop
from laneway.domain.held_limits import count_held, mark_held
from laneway.domain.job import DEFAULT_WORKSPACE
from laneway.errors import InvalidInput

if TYPE_CHECKING:
    from laneway.store.database import Database

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


def _blocking(
    verb: Callable[Concatenate[Client, P], Coroutine[Any, Any, R]],
    convert: Callable[[SyncClient, R], A],
) -> Callable[Concatenate[SyncClient, P], A]:
    """The async verb as a blocking call."""

    @wraps(verb)
    def call(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> A:
        conn = kwargs.get("conn")
        result = self._run(lambda client: verb(client, *args, **kwargs), conn, verb.__name__)
        return convert(self, result)

    return call


def _same(_client: SyncClient, result: R) -> R:
    return result


def _handle(client: SyncClient, job: JobHandle[R]) -> SyncJobHandle[R]:
    return job.blocking(client)


class SyncClient:
    """The verbs of Client as blocking calls, from any thread, also after a fork.

    They run in one background thread with separate connections. They also work inside a running
    event loop, such as a notebook's, but block it. An `async def` handler may not call them.
    With `conn=` (a sync connection) they run in the calling thread.
    """

    _portal: Portal[Client] | None
    _lock: threading.Lock

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reset()
        _clients.add(self)

    submit = _blocking(Client.submit, _handle)
    prepare = _blocking(Client.prepare, _same)
    submit_prepared = _blocking(Client.submit_prepared, _handle)
    get = _blocking(Client.get, _same)
    cancel = _blocking(Client.cancel, _same)
    approve = _blocking(Client.approve, _same)
    reject = _blocking(Client.reject, _same)
    wait = _blocking(Client.wait, _same)
    submit_flow = _blocking(Client.submit_flow, _same)
    get_flow = _blocking(Client.get_flow, _same)
    wait_flow = _blocking(Client.wait_flow, _same)
    cancel_flow = _blocking(Client.cancel_flow, _same)
    retry_flow = _blocking(Client.retry_flow, _same)
    reprioritize_flow = _blocking(Client.reprioritize_flow, _same)
    send_event = _blocking(Client.send_event, _same)

    def flow(
        self,
        name: str,
        *,
        tags: Sequence[str] = (),
        workspace: str = DEFAULT_WORKSPACE,
        created_by: str | None = None,
        conn: object = None,
        wake: bool | None = None,
    ) -> SyncFlowHandle:
        """A new flow: jobs added inside `with` are stored together, or not at all."""
        return SyncFlowHandle(self, new_draft(name, tags, workspace, created_by), conn, wake)

    @overload
    def submit_many(
        self, new: Iterable[NewJobSpec[R]], *, conn: object = None, wake: bool | None = None
    ) -> list[SyncJobHandle[R]]: ...
    @overload
    def submit_many(
        self, new: Iterable[Given], *, conn: object = None, wake: bool | None = None
    ) -> list[SyncJobHandle[Any]]: ...
    def submit_many(
        self, new: Iterable[Given], *, conn: object = None, wake: bool | None = None
    ) -> list[SyncJobHandle[Any]]:
        """Submits up to 1,000 jobs by COPY, all or none; returns handles in the same order."""
        made = self._run(lambda client: client.submit_many(new, conn=conn, wake=wake), conn)
        return [job.blocking(self) for job in made]

    def wake(self, made: Iterable[SyncJobHandle[Any]]) -> None:
        """Wakes workers for jobs submitted with `conn=`, once that transaction is committed."""

        async def wake(client: Client) -> None:
            client.wake(made)

        self._run(wake, None)

    @contextmanager
    def limit(self, *names: str, priority: int = 0, timeout: float | None = None) -> Iterator[None]:
        """Holds one of each limit inside `with`, in turn with jobs that want them."""
        already_held = count_held(id(self._client), names)
        held = self._run(
            lambda client: client.limit_holds.acquire(names, priority, timeout, already_held), None
        )
        try:
            with mark_held(id(self._client), names):
                yield
        finally:
            self._run(lambda client: client.limit_holds.release(held), None)

    def operate(
        self,
        verb: Callable[Concatenate[Database, P], Coroutine[Any, Any, A]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> A:
        """Runs a verb of laneway.control on this application's database."""
        return self.run(lambda client: verb(client.database, *args, **kwargs))

    def run(self, work: Callable[[Client], Coroutine[Any, Any, R]]) -> R:
        """Runs a coroutine in the background thread."""
        return self._run(work, None)

    def close(self) -> None:
        """Stops the background thread and closes its connections; a later call restarts it."""
        with self._lock:
            portal, self._portal = self._portal, None
        if portal is not None:
            portal.close()

    def _reset(self) -> None:
        # A forked child has no such thread, and the inherited lock may stay held forever.
        self._portal = None
        self._lock = threading.Lock()

    def _run(
        self,
        work: Callable[[Client], Coroutine[Any, Any, R]],
        conn: object,
        verb: str | None = None,
    ) -> R:
        if conn is None:
            _refuse_in_async_handler(verb)
            return self._open_portal().run(work)
        from laneway.store.caller_connection import borrow, run_now

        if borrow(conn).is_async:
            kind = f"{type(conn).__module__}.{type(conn).__qualname__}"
            raise TypeError(f"conn is async ({kind}): await the same verb of the async client")
        return run_now(work(self._client))

    def _open_portal(self) -> Portal[Client]:
        with self._lock:
            if self._portal is None:
                self._portal = Portal(self._open_client, _close)
            return self._portal

    def _open_client(self) -> Client:
        from laneway.store.database import Database

        original = self._client
        database = Database(original.database.dsn, original.settings, role="sync client")
        client = Client(database, original.settings, original.handlers)
        client.wait_cure = original.wait_cure
        return client


def _refuse_in_async_handler(verb: str | None) -> None:
    """A blocked event loop would stop all handlers of the worker, and its heartbeat."""
    # A plain handler may run a loop and block it: nothing else is on it.
    if not is_on_loop.get():
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    form = "await the same verb without .sync" if verb is None else f"await lw.{verb}(…)"
    if verb == Client.submit_flow.__name__:
        form = "write `async with lw.flow(…)`"
    raise InvalidInput("lw.sync", f"blocks the event loop of an async def handler: {form}")


async def _close(client: Client) -> None:
    await client.close()
    await client.database.close()


_clients: WeakSet[SyncClient] = WeakSet()


def _after_fork() -> None:
    for client in _clients:
        client._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
