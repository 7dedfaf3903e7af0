"""The resources of `lw.sync`: the verbs of `laneway.control.resources` as blocking calls."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from laneway.client.client import Client
from laneway.client.sync import SyncClient
from laneway.control.resources import Flows, Jobs, Lanes, Limits, Schedules, Webhooks

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")


class _Blocking(Generic[V]):
    """A resource whose verbs run in the thread of the client."""

    def __init__(self, client: SyncClient, of: Callable[[Client], V]) -> None:
        self._client = client
        self._of = of

    def call(self, work: Callable[[V], Coroutine[Any, Any, R]]) -> R:
        return self._client.run(lambda client: work(self._of(client)))


def _blocking(
    verb: Callable[Concatenate[V, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[_Blocking[V], P], R]:
    """The async verb as a blocking call, with its signature."""

    @wraps(verb)
    def call(self: _Blocking[V], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.call(lambda resource: verb(resource, *args, **kwargs))

    return call


class SyncLanes(_Blocking[Lanes]):
    """The lanes: `lw.sync.lanes`."""

    list = _blocking(Lanes.list)
    get = _blocking(Lanes.get)
    create = _blocking(Lanes.create)
    set = _blocking(Lanes.set)
    drain = _blocking(Lanes.drain)
    resume = _blocking(Lanes.resume)
    take = _blocking(Lanes.take)
    load = _blocking(Lanes.load)
    history = _blocking(Lanes.history)
    rollback = _blocking(Lanes.rollback)


class SyncLimits(_Blocking[Limits]):
    """The limits: `lw.sync.limits`."""

    list = _blocking(Limits.list)
    get = _blocking(Limits.get)
    set = _blocking(Limits.set)
    delete = _blocking(Limits.delete)
    history = _blocking(Limits.history)
    rollback = _blocking(Limits.rollback)


class SyncSchedules(_Blocking[Schedules]):
    """The schedules: `lw.sync.schedules`."""

    list = _blocking(Schedules.list)
    get = _blocking(Schedules.get)
    set = _blocking(Schedules.set)
    enable = _blocking(Schedules.enable)
    disable = _blocking(Schedules.disable)
    delete = _blocking(Schedules.delete)
    run = _blocking(Schedules.run)
    slots = _blocking(Schedules.slots)
    history = _blocking(Schedules.history)
    rollback = _blocking(Schedules.rollback)
    # The names of earlier versions.
    put, listing, run_now = set, list, run  # noqa: A003 - the methods, not the built-ins


class SyncWebhooks(_Blocking[Webhooks]):
    """The webhooks: `lw.sync.webhooks`."""

    list = _blocking(Webhooks.list)
    get = _blocking(Webhooks.get)
    set = _blocking(Webhooks.set)
    rotate = _blocking(Webhooks.rotate)
    test = _blocking(Webhooks.test)
    delete = _blocking(Webhooks.delete)


class SyncFlows(_Blocking[Flows]):
    """The flows: `lw.sync.flows`."""

    list = _blocking(Flows.list)
    get = _blocking(Flows.get)
    cancel = _blocking(Flows.cancel)
    retry = _blocking(Flows.retry)


class SyncJobs(_Blocking[Jobs]):
    """The jobs, as an operator sees them: `lw.sync.jobs`."""

    list = _blocking(Jobs.list)
    get = _blocking(Jobs.get)
    explain = _blocking(Jobs.explain)
    cancel = _blocking(Jobs.cancel)
    approve = _blocking(Jobs.approve)
    reject = _blocking(Jobs.reject)
    retry = _blocking(Jobs.retry)
    run_now = _blocking(Jobs.run_now)
    reprioritize = _blocking(Jobs.reprioritize)
    delete = _blocking(Jobs.delete)
