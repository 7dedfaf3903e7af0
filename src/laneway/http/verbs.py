"""The verbs of both clients, written once: each is a function that builds a request as a value."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload
from uuid import UUID

from laneway.http import access, jobs, operations, schedules, stats, workers
from laneway.http.call import Call, Listing, in_header, listed
from laneway.http.flow import Flow, Stream, follow, of_job, wait
from laneway.http.models import Event
from laneway.http.pages import AsyncPages, Pages
from laneway.http.runners import AsyncShell, SyncShell

P = ParamSpec("P")
T = TypeVar("T")


class Verb(Generic[P, T]):
    """A method that runs the call it builds."""

    def __init__(self, build: Callable[P, Call[T]]) -> None:
        self.build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncShell, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncShell, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: SyncShell | AsyncShell | None, owner: type) -> Any:
        if client is None:
            return self
        return _bound(self.build, client.perform)


class ListVerb(Generic[P, T]):
    """A method that answers a list, to be read item by item or page by page."""

    def __init__(self, build: Callable[P, Listing[T]]) -> None:
        self.build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncShell, owner: type) -> Callable[P, Pages[T]]: ...
    @overload
    def __get__(self, client: AsyncShell, owner: type) -> Callable[P, AsyncPages[T]]: ...
    def __get__(self, client: SyncShell | AsyncShell | None, owner: type) -> Any:
        if client is None:
            return self
        kind = Pages if isinstance(client, SyncShell) else AsyncPages
        return _bound(self.build, lambda listing: kind(client, listing))  # type: ignore[arg-type]


class StreamVerb(Generic[P]):
    """A method that yields events."""

    def __init__(self, build: Callable[P, Stream]) -> None:
        self.build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncShell, owner: type) -> Callable[P, Iterator[Event]]: ...
    @overload
    def __get__(self, client: AsyncShell, owner: type) -> Callable[P, AsyncIterator[Event]]: ...
    def __get__(self, client: SyncShell | AsyncShell | None, owner: type) -> Any:
        if client is None:
            return self
        return _bound(self.build, lambda stream: client.emit(follow(stream)))


class FlowVerb(Generic[P, T]):
    """A method that takes the steps of a flow."""

    def __init__(self, build: Callable[P, Flow[T]]) -> None:
        self.build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncShell, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncShell, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: SyncShell | AsyncShell | None, owner: type) -> Any:
        if client is None:
            return self
        return _bound(self.build, client.run)


def _bound(build: Callable[..., Any], run: Callable[[Any], Any]) -> Callable[..., Any]:
    def method(*args: Any, **kwargs: Any) -> Any:
        return run(build(*args, **kwargs))

    return update_wrapper(method, build)


def watch(job_id: UUID | str, *, last_event_id: str | None = None) -> Stream:
    """The job now and after every change, until it has ended; lost connections are resumed."""
    return of_job(jobs.checked_id(job_id), _place(last_event_id))


def events(topics: Iterable[str] = (), *, last_event_id: str | None = None) -> Stream:
    """What happens to the topics (`jobs`, `job:<id>`, `lane:<name>`, …), for as long as asked."""
    asked = tuple(("topic", each) for each in listed(topics, "topics"))
    return Stream("/events", asked, None, _place(last_event_id))


def _place(last_event_id: str | None) -> str | None:
    return None if last_event_id is None else in_header(last_event_id, "last_event_id")


def wait_for(job_id: UUID | str, timeout: float | None = None) -> Flow[object]:
    """The job's result; JobFailed if it fails or is cancelled, TimeoutError after `timeout`."""
    return wait(jobs.checked_id(job_id), timeout)


class Verbs:
    """What a client can ask a server, under the names of the server's operations."""

    submit = Verb(jobs.submit)
    submit_many = Verb(jobs.submit_many)
    list_jobs = ListVerb(jobs.list_jobs)
    count_jobs = Verb(stats.count_jobs)
    get_job = Verb(jobs.get_job)
    review_job = Verb(jobs.review_job)
    list_attempts = ListVerb(jobs.list_attempts)
    explain_job = Verb(jobs.explain_job)
    cancel_job = Verb(jobs.cancel_job)
    approve_job = Verb(jobs.approve_job)
    reject_job = Verb(jobs.reject_job)
    retry_job = Verb(jobs.retry_job)
    delete_job = Verb(jobs.delete_job)
    cancel_running_job = Verb(jobs.cancel_running_job)
    reprioritize_job = Verb(jobs.reprioritize_job)
    preview_bulk = Verb(jobs.preview_bulk)
    order_bulk = Verb(jobs.order_bulk)
    get_bulk = Verb(jobs.get_bulk)

    watch = StreamVerb(watch)
    events = StreamVerb(events)
    wait = FlowVerb(wait_for)

    list_lanes = ListVerb(operations.list_lanes)
    get_lane = Verb(operations.get_lane)
    create_lane = Verb(operations.create_lane)
    tune_lane = Verb(operations.tune_lane)
    take_type = Verb(operations.take_type)
    list_changes = ListVerb(operations.list_changes)
    list_lane_changes = ListVerb(operations.list_lane_changes)
    roll_back_lane = Verb(operations.roll_back_lane)
    read_status = Verb(operations.read_status)
    drain_worker = Verb(workers.drain_worker)
    resume_worker = Verb(workers.resume_worker)
    pause_claims = Verb(operations.pause_claims)
    resume_claims = Verb(operations.resume_claims)
    freeze_lanes = Verb(operations.freeze_lanes)
    thaw_lanes = Verb(operations.thaw_lanes)
    read_stats = Verb(stats.read_stats)
    read_failures = Verb(stats.read_failures)
    list_job_types = ListVerb(stats.list_job_types)
    list_publishers = ListVerb(stats.list_publishers)
    forget_publisher = Verb(stats.forget_publisher)
    read_database = Verb(stats.read_database)
    list_limits = ListVerb(operations.list_limits)
    get_limit = Verb(operations.get_limit)
    put_limit = Verb(operations.put_limit)
    delete_limit = Verb(operations.delete_limit)
    list_limit_changes = ListVerb(operations.list_limit_changes)
    roll_back_limit = Verb(operations.roll_back_limit)

    list_schedules = ListVerb(schedules.list_schedules)
    create_schedule = Verb(schedules.create_schedule)
    get_schedule = Verb(schedules.get_schedule)
    change_schedule = Verb(schedules.change_schedule)
    delete_schedule = Verb(schedules.delete_schedule)
    run_schedule = Verb(schedules.run_schedule)
    list_slots = ListVerb(schedules.list_slots)
    list_schedule_changes = ListVerb(schedules.list_schedule_changes)
    roll_back_schedule = Verb(schedules.roll_back_schedule)

    list_principals = ListVerb(access.list_principals)
    create_principal = Verb(access.create_principal)
    switch_principal = Verb(access.switch_principal)
    list_roles = ListVerb(access.list_roles)
    create_role = Verb(access.create_role)
    change_role = Verb(access.change_role)
    delete_role = Verb(access.delete_role)
    list_grants = ListVerb(access.list_grants)
    grant_role = Verb(access.grant_role)
    revoke_grant = Verb(access.revoke_grant)
    list_tokens = ListVerb(access.list_tokens)
    create_token = Verb(access.create_token)
    revoke_token = Verb(access.revoke_token)
    list_acts = ListVerb(access.list_acts)
    get_me = Verb(access.get_me)
    get_health = Verb(access.get_health)
    get_readiness = Verb(access.get_readiness)
