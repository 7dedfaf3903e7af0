"""The verbs of both clients, written once: each is a function that builds a request as a value."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from datetime import timedelta
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload
from uuid import UUID

from laneway.http import flows, jobs, operations
from laneway.http.call import Call, Listing, in_header, listed
from laneway.http.declared import call_of, listing_of
from laneway.http.models import Event
from laneway.http.pages import AsyncPages, Pages
from laneway.http.procedure import EventSource, Procedure, follow, of_job, wait
from laneway.http.runners import AsyncRunner, SyncRunner
from laneway.operations import access, audit, job_types, lanes, limits, schedules, webhooks
from laneway.operations import flows as declared_flows
from laneway.operations import workers as control

P = ParamSpec("P")
T = TypeVar("T")
B = TypeVar("B")


class _Verb(Generic[P, B]):
    """A method that both clients have: a function that builds what the client then runs."""

    def __init__(self, build: Callable[P, B]) -> None:
        self.build = build
        self.__doc__ = build.__doc__


class ClientMethod(_Verb[P, Call[T]]):
    """A method that runs the call it builds."""

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncRunner, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncRunner, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: SyncRunner | AsyncRunner | None, owner: type) -> Any:
        return self if client is None else _bound(self.build, client.perform)


class ListVerb(_Verb[P, Listing[T]]):
    """A method that answers a list, to be read item by item or page by page."""

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncRunner, owner: type) -> Callable[P, Pages[T]]: ...
    @overload
    def __get__(self, client: AsyncRunner, owner: type) -> Callable[P, AsyncPages[T]]: ...
    def __get__(self, client: SyncRunner | AsyncRunner | None, owner: type) -> Any:
        if client is None:
            return self
        kind = Pages if isinstance(client, SyncRunner) else AsyncPages
        return _bound(self.build, lambda listing: kind(client, listing))  # type: ignore[arg-type]


class StreamVerb(_Verb[P, EventSource]):
    """A method that yields events."""

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncRunner, owner: type) -> Callable[P, Iterator[Event]]: ...
    @overload
    def __get__(self, client: AsyncRunner, owner: type) -> Callable[P, AsyncIterator[Event]]: ...
    def __get__(self, client: SyncRunner | AsyncRunner | None, owner: type) -> Any:
        if client is None:
            return self
        return _bound(self.build, lambda stream: client.emit(follow(stream)))


class ProcedureVerb(_Verb[P, Procedure[T]]):
    """A method that takes the steps of a procedure."""

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncRunner, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncRunner, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: SyncRunner | AsyncRunner | None, owner: type) -> Any:
        return self if client is None else _bound(self.build, client.run)


def _bound(build: Callable[..., Any], run: Callable[[Any], Any]) -> Callable[..., Any]:
    def method(*args: Any, **kwargs: Any) -> Any:
        return run(build(*args, **kwargs))

    return update_wrapper(method, build)


def watch(job_id: UUID | str, *, last_event_id: str | None = None) -> EventSource:
    """The job now and after every change, until it has ended; lost connections are resumed."""
    return of_job(jobs.checked_id(job_id), _place(last_event_id))


def events(topics: Iterable[str] = (), *, last_event_id: str | None = None) -> EventSource:
    """The events of the topics (`jobs`, `job:<id>`, `lane:<name>`, …), until the caller stops."""
    asked = tuple(("topic", each) for each in listed(topics, "topics"))
    return EventSource("/events", asked, _place(last_event_id))


def _place(last_event_id: str | None) -> str | None:
    return None if last_event_id is None else in_header(last_event_id, "last_event_id")


def wait_for(job_id: UUID | str, timeout: float | timedelta | None = None) -> Procedure[object]:
    """The job's result; JobFailed if it fails or is cancelled, TimeoutError after `timeout`."""
    return wait(jobs.checked_id(job_id), timeout)


class Verbs:
    """The methods of both clients, under the names of the server's operations."""

    submit = ClientMethod(jobs.submit)
    submit_many = ClientMethod(jobs.submit_many)
    list_jobs = ListVerb(jobs.list_jobs)
    count_jobs = ClientMethod(operations.count_jobs)
    find_job_ids = ClientMethod(jobs.find_job_ids)
    get_job = ClientMethod(jobs.get_job)
    review_job = ClientMethod(jobs.review_job)
    list_attempts = ListVerb(jobs.list_attempts)
    explain_job = ClientMethod(jobs.explain_job)
    cancel_job = ClientMethod(jobs.cancel_job)
    approve_job = ClientMethod(jobs.approve_job)
    reject_job = ClientMethod(jobs.reject_job)
    retry_job = ClientMethod(jobs.retry_job)
    run_job_now = ClientMethod(jobs.run_job_now)
    delete_job = ClientMethod(jobs.delete_job)
    cancel_running_job = ClientMethod(jobs.cancel_running_job)
    reprioritize_job = ClientMethod(jobs.reprioritize_job)
    preview_bulk = ClientMethod(jobs.preview_bulk)
    start_bulk = ClientMethod(jobs.start_bulk)
    get_bulk = ClientMethod(jobs.get_bulk)

    watch = StreamVerb(watch)
    events = StreamVerb(events)
    wait = ProcedureVerb(wait_for)

    submit_flow = ClientMethod(flows.submit_flow)
    list_flows = ListVerb(listing_of(declared_flows.list_flows))
    get_flow = ClientMethod(call_of(declared_flows.get_flow))
    cancel_flow = ClientMethod(call_of(declared_flows.cancel_flow))
    retry_flow = ClientMethod(call_of(declared_flows.retry_flow))
    watch_flow = StreamVerb(flows.watch_flow)
    wait_flow = ProcedureVerb(flows.wait_flow)
    send_event = ClientMethod(call_of(declared_flows.send_event))

    list_lanes = ListVerb(listing_of(lanes.list_lanes))
    get_lane = ClientMethod(call_of(lanes.get_lane))
    find_lane = ClientMethod(call_of(lanes.find_lane))
    create_lane = ClientMethod(call_of(lanes.create_lane))
    load_lanes = ClientMethod(call_of(lanes.load_lanes))
    tune_lane = ClientMethod(call_of(lanes.tune_lane))
    take_type = ClientMethod(call_of(lanes.take_type))
    list_lane_changes = ListVerb(listing_of(lanes.list_lane_changes))
    roll_back_lane = ClientMethod(call_of(lanes.roll_back_lane))
    list_changes = ListVerb(operations.list_changes)
    read_status = ClientMethod(operations.read_status)
    drain_worker = ClientMethod(operations.drain_worker)
    resume_worker = ClientMethod(operations.resume_worker)
    pause_claims = ClientMethod(call_of(control.pause_claims))
    resume_claims = ClientMethod(call_of(control.resume_claims))
    freeze_lanes = ClientMethod(operations.freeze_lanes)
    thaw_lanes = ClientMethod(call_of(control.thaw_lanes))
    read_stats = ClientMethod(call_of(control.read_stats))
    read_failures = ClientMethod(operations.read_failures)
    list_job_types = ListVerb(listing_of(job_types.list_job_types))
    list_publishers = ListVerb(listing_of(job_types.list_publishers))
    forget_publisher = ClientMethod(operations.forget_publisher)
    read_database = ClientMethod(operations.read_database)
    list_limits = ListVerb(listing_of(limits.list_limits))
    get_limit = ClientMethod(call_of(limits.get_limit))
    put_limit = ClientMethod(operations.put_limit)
    delete_limit = ClientMethod(call_of(limits.delete_limit))
    list_limit_changes = ListVerb(listing_of(limits.list_limit_changes))
    roll_back_limit = ClientMethod(call_of(limits.roll_back_limit))

    list_schedules = ListVerb(listing_of(schedules.list_schedules))
    create_schedule = ClientMethod(call_of(schedules.create_schedule))
    get_schedule = ClientMethod(call_of(schedules.get_schedule))
    change_schedule = ClientMethod(call_of(schedules.change_schedule))
    delete_schedule = ClientMethod(call_of(schedules.delete_schedule))
    run_schedule = ClientMethod(call_of(schedules.run_schedule))
    list_slots = ListVerb(listing_of(schedules.list_slots))
    list_schedule_changes = ListVerb(listing_of(schedules.list_schedule_changes))
    roll_back_schedule = ClientMethod(call_of(schedules.roll_back_schedule))

    list_webhooks = ListVerb(listing_of(webhooks.list_webhooks))
    create_webhook = ClientMethod(call_of(webhooks.create_webhook))
    get_webhook = ClientMethod(call_of(webhooks.get_webhook))
    change_webhook = ClientMethod(call_of(webhooks.change_webhook))
    delete_webhook = ClientMethod(call_of(webhooks.delete_webhook))
    rotate_webhook_secret = ClientMethod(call_of(webhooks.rotate_webhook_secret))
    test_webhook = ClientMethod(call_of(webhooks.test_webhook))

    list_principals = ListVerb(listing_of(access.list_principals))
    create_principal = ClientMethod(call_of(access.create_principal))
    switch_principal = ClientMethod(call_of(access.switch_principal))
    list_roles = ListVerb(listing_of(access.list_roles))
    create_role = ClientMethod(call_of(access.create_role))
    change_role = ClientMethod(call_of(access.change_role))
    delete_role = ClientMethod(call_of(access.delete_role))
    list_grants = ListVerb(listing_of(access.list_grants))
    grant_role = ClientMethod(call_of(access.grant_role))
    revoke_grant = ClientMethod(call_of(access.revoke_grant))
    list_tokens = ListVerb(listing_of(access.list_tokens))
    create_token = ClientMethod(call_of(access.create_token))
    revoke_token = ClientMethod(call_of(access.revoke_token))
    list_audit_entries = ListVerb(listing_of(audit.list_audit_entries))
    get_me = ClientMethod(operations.get_me)
    get_health = ClientMethod(operations.get_health)
    get_readiness = ClientMethod(operations.get_readiness)
