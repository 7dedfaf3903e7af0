"""The verbs of a client on flows and events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from laneway.client.decisions import APPLICATION
from laneway.client.flow import FlowHandle
from laneway.client.flow_draft import FlowDraft, store_draft
from laneway.client.job_end import PollResult, poll
from laneway.client.spec import read_tags
from laneway.domain import verb_rules
from laneway.domain.claim import parse_job_id
from laneway.domain.flow import ChangedFlow, Flow, check_completed, check_flow_name
from laneway.domain.job import DEFAULT_WORKSPACE, NAME_BYTES, check_priority, check_tags
from laneway.domain.payload import JsonText, encode
from laneway.domain.sent_event import RETENTION_S, EventDelivery, check_event
from laneway.domain.text import check_name, check_text
from laneway.observability import tracing
from laneway.store import flow_changes, local_notify, sent_events
from laneway.store.batcher import Batcher

if TYPE_CHECKING:
    from laneway.client.catalog import Catalog
    from laneway.config.settings import Settings
    from laneway.domain.payload import PayloadLimits
    from laneway.store.batch import Answer
    from laneway.store.database import AsyncConn, Database
    from laneway.store.statement import Statement

T = TypeVar("T")

# Events in a transaction, which has about 1 MiB, and transactions at a time.
_EVENTS_AT_ONCE: Final = 100
_WEIGHT_BYTES: Final = 1024 * 1024 // _EVENTS_AT_ONCE
_SENDS_AT_ONCE: Final = 2


class FlowVerbs:
    """Adds `flow` and `send_event` to a client."""

    if TYPE_CHECKING:
        settings: Settings
        _catalog: Catalog
        _limits: PayloadLimits

        @property
        def database(self) -> Database: ...
        async def _run(self, statement: Statement[T]) -> T: ...
        async def _notify(self, message: str) -> None: ...
        def _wake(self, job_types: Iterable[str]) -> None: ...
        async def _connected(self, work: Callable[[AsyncConn], Awaitable[T]]) -> T: ...

    def flow(
        self,
        name: str,
        *,
        tags: Sequence[str] = (),
        workspace: str = DEFAULT_WORKSPACE,
        created_by: str | None = None,
        conn: object = None,
        wake: bool | None = None,
    ) -> FlowHandle:
        """A new flow: jobs added inside `async with` are stored together, or not at all.

        `conn`: in the caller's transaction, as in `submit`.
        """
        draft = new_draft(name, tags, workspace, created_by)
        return FlowHandle(self, draft, conn, wake)  # type: ignore[arg-type]

    async def submit_flow(self, draft: FlowDraft, *, conn: object = None) -> list[Answer]:
        """Stores a flow; returns its jobs in the order added. `flow` calls it."""
        from laneway.store.bounds import bounded_transaction
        from laneway.store.caller_connection import borrow

        with tracing.sending(*draft.check(), count=len(draft.ids)):
            if conn is not None:
                return await store_draft(borrow(conn), draft, self._catalog, self._limits)

            async def store(own: AsyncConn) -> list[Answer]:
                async with bounded_transaction(own, self.settings):
                    return await store_draft(borrow(own), draft, self._catalog, self._limits)

            stored = await self._connected(store)
        local_notify.publish()
        return stored

    async def get_flow(self, flow_id: UUID | str) -> Flow:
        """The flow with the number of its jobs in each state."""
        return await flow_changes.find(self.database, parse_job_id(flow_id))

    async def wait_flow(
        self, flow_id: UUID | str, timeout: float | timedelta | None = None
    ) -> Flow:
        """The flow once all its jobs have ended; JobFailed unless all completed."""
        wanted = parse_job_id(flow_id)

        async def look() -> PollResult[Flow]:
            found = await self.get_flow(wanted)
            return PollResult(found, f"running: {found.counts}", found.is_over)

        cure = f"`laneway flows show {wanted}` shows its jobs"
        return check_completed(await poll(look, f"flow {wanted}", timeout, cure))

    async def cancel_flow(
        self, flow_id: UUID | str, reason: str | None = None, by: str | None = None
    ) -> ChangedFlow:
        """Cancels the flow's jobs that have not ended; running ones are asked to stop."""
        wanted = parse_job_id(flow_id)
        verb_rules.check_actor(by, reason)
        done = await flow_changes.cancel(self.database, wanted, by or APPLICATION, reason)
        for worker_id in done.workers:
            await self._notify(f"cancel {worker_id}")
        done.check(wanted)
        return ChangedFlow(await self.get_flow(wanted), done.changed)

    async def retry_flow(self, flow_id: UUID | str, by: str | None = None) -> ChangedFlow:
        """Queues the flow's failed and cancelled jobs again."""
        wanted = parse_job_id(flow_id)
        verb_rules.check_actor(by)
        done = await flow_changes.retry(self.database, wanted, by or APPLICATION)
        self._wake(done.wakes)
        done.check(wanted)
        return ChangedFlow(await self.get_flow(wanted), done.changed)

    async def reprioritize_flow(
        self, flow_id: UUID | str, priority: int, by: str | None = None
    ) -> ChangedFlow:
        """Changes the priority of the flow's jobs that have not started."""
        wanted = parse_job_id(flow_id)
        verb_rules.check_actor(by)
        check_priority(priority)
        changed = await flow_changes.reprioritize(
            self.database, wanted, by or APPLICATION, priority
        )
        return ChangedFlow(await self.get_flow(wanted), changed)

    @cached_property
    def _event_sends(self) -> Batcher[sent_events.NewEvent, sent_events.SentEvent]:
        """Sends events that are sent at the same time in one transaction."""

        async def send(events: list[sent_events.NewEvent]) -> list[sent_events.SentEvent]:
            return await self._run(sent_events.send_all(events))

        return Batcher(
            send,
            most=_EVENTS_AT_ONCE,
            weigh=_weight,
            at_once=_SENDS_AT_ONCE,
            splits_aborted=True,
        )

    async def send_event(
        self,
        name: str,
        *,
        key: str = "",
        payload: object = None,
        workspace: str = DEFAULT_WORKSPACE,
        sent_by: str | None = None,
        retention: float | timedelta = RETENTION_S,
        conn: object = None,
        wake: bool | None = None,
    ) -> EventDelivery:
        """Sends an event to the jobs that wait for it, now or within its retention (24 h).

        `conn`: in the caller's transaction; jobs go on when it commits, at their workers' next
        poll unless `wake=True`.
        """
        retention_s = check_event(name, key, retention)
        check_text(workspace, "workspace", max_bytes=NAME_BYTES)
        if sent_by is not None:
            check_name(sent_by, "sent_by", max_bytes=2 * NAME_BYTES)
        text = payload if isinstance(payload, JsonText) else encode(payload, limits=self._limits)
        if conn is None:
            event = sent_events.NewEvent(name, key, text, workspace, sent_by, retention_s)
            (sent,) = await self._event_sends.run([event])
            if wake is not False and sent.job_types:
                self._wake(sent.job_types)
        else:
            from laneway.store.caller_connection import borrow

            sent = await borrow(conn).run(
                sent_events.send(
                    name,
                    key,
                    text,
                    workspace=workspace,
                    sent_by=sent_by,
                    wake=bool(wake),
                    retention_s=retention_s,
                )
            )
        return EventDelivery(sent.id, sent.delivered)


def _weight(event: sent_events.NewEvent) -> int:
    return 1 + len(event.payload) // _WEIGHT_BYTES


def new_draft(name: str, tags: Sequence[str], workspace: str, created_by: str | None) -> FlowDraft:
    """An empty flow; InvalidInput names the field and the rule that it breaks."""
    check_flow_name(name)
    check_text(workspace, "workspace", max_bytes=NAME_BYTES)
    chosen = read_tags(tags)
    check_tags(chosen)
    if created_by is not None:
        check_name(created_by, "created_by", max_bytes=2 * NAME_BYTES)
    return FlowDraft(name, workspace, chosen, created_by)
