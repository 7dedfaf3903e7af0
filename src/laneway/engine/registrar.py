"""Registers a worker process and its job types, and keeps their rows up to date."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from shlex import quote
from typing import Any, ClassVar, Final

from laneway.config.lanes import is_set_by_operator
from laneway.config.settings import Settings
from laneway.domain.cron import parse
from laneway.domain.declared import Limit as DeclaredLimit
from laneway.domain.end_hook import EndHook
from laneway.domain.job_type import forget_command
from laneway.domain.lane import DEFAULT_LANE, SETTINGS, Lane
from laneway.domain.limit import Limit
from laneway.domain.next_runs import fires_after
from laneway.domain.overview import TOUCH_S
from laneway.domain.schedule import Schedule, encode_payload
from laneway.domain.suggestion import suggest
from laneway.engine.claim.capacity import Capacity
from laneway.engine.hook_publisher import publish_hooks, warn_of_unknown_types
from laneway.engine.process.memory import resident_bytes
from laneway.engine.registry import Handler, Registry
from laneway.engine.service import Service
from laneway.errors import ConfigError, InvalidInput, LanewayError
from laneway.observability.log_throttle import LogThrottle
from laneway.observability.safe_logger import SafeLogger
from laneway.store import job_types, lanes, limits, schedules
from laneway.store.database import Database
from laneway.store.missing_limits import create_missing
from laneway.store.workers import Presence, WorkerInfo, conflicts, publish, register, stop, touch

log = SafeLogger("laneway")

FULL_S = 1.0
# A poll reports along from so long before the report is due.
ALONG_S = 1.5
SHORTEST_S = 0.05
SEE_S = 3600.0
# When workers that this one replaced have ended, or their rows have lapsed.
REPLACED_S = 60.0
STALE_SHOWN = 5
# The application that publishes Laneway's own job types.
OWN = "laneway"
# Options of `laneway schedules set` that are not named like their settings.
_OPTIONS: Final = {"job_type": "--type", "check_name": "--check", "tags": "--tag"}


class Registrar(Service):
    """Publishes that the process is alive, and reads whether an operator drains it.

    Jobs do not depend on this row: their leases decide.
    """

    name: ClassVar[str] = "registrar"

    def __init__(
        self,
        database: Database,
        warnings: LogThrottle,
        worker: WorkerInfo,
        on_resumed: Callable[[], None],
        capacity: Capacity | None = None,
    ) -> None:
        """`capacity` is None for a process that runs no jobs."""
        super().__init__(warnings)
        self._database = database
        self._worker = worker
        self._on_resumed = on_resumed
        self._capacity = capacity
        self._expects_full = False
        # When to report without a poll.
        self._report_at = 0.0
        self._requests = self._answered = 0
        # Published job types with their application, and when to publish again that they are used.
        self._published: dict[str, str] = {}
        self._see_at = 0.0
        # The end hooks of each application, and when to publish them again.
        self._hooks: dict[str, list[EndHook]] = {}
        self._hooks_at = 0.0
        self._is_leaving = False
        if capacity is not None:
            capacity.fullness.on_full = self._expect_full
        # While drained the worker claims nothing; jobs claimed before still run.
        self.is_drained = False

    async def register(self, registry: Registry, settings: Settings) -> None:
        """Create missing lanes, limits and schedules, publish job types, register the worker."""
        by = f"worker {self._worker.name}"
        state = await self._database.run(lanes.read())
        # Code comes before settings, as for every setting.
        for source, given in (("lanes=", registry.lanes), ("LANEWAY_LANES", settings.lanes)):
            await self._create_lanes(source, given, by, state)
        # A lane's row that already has a type wins.
        named: list[tuple[str, str | None]] = [
            (lane.name, job_type)
            for lane in (*registry.lanes, *settings.lanes)
            for job_type in lane.job_types
        ]
        named += [
            (handler.lane, handler.job_type)
            for handler in registry
            if handler.lane is not None and state.lane_of(handler.job_type) != handler.lane
        ]
        if named:
            declared = [lane.name for lane in (*registry.lanes, *settings.lanes)]
            await adopt(self._database, named, by, state, declared)
        await self._create_limits(registry, by)
        if len(registry):
            await self._publish(registry, settings.application)
        await self._create_schedules(registry, settings, by)
        await self._database.run(register(replace(self._worker, memory_bytes=resident_bytes())))

    async def _create_lanes(
        self, source: str, given: Sequence[Lane], by: str, state: lanes.ControlState
    ) -> None:
        """Create missing lanes without their job types, and log those that differ."""
        for lane in given:
            if lane.name not in state.lanes:
                settings: dict[str, Any] = {name: getattr(lane, name) for name in SETTINGS}
                new = Lane(lane.name, **settings, enabled=lane.enabled)
                if await self._database.run(lanes.create(new, by)):
                    log.info("created the lane %s: max_slots %s", lane.name, _value(lane.max_slots))
            _warn_of_differences(lane, state, source)

    async def _publish(self, registry: Registry, application: str | None) -> None:
        records = registry.records()
        if application is not None:
            records = [replace(one, application=application) for one in records]
        await self._database.run(publish(records))
        pairs = {one.name: one.application for one in records if one.application is not None}
        self._published, self._see_at = pairs, time.monotonic() + SEE_S
        self._hooks = {application: [] for application in pairs.values()}
        for hook in registry.end_hooks.values():
            self._hooks[pairs[hook.name]].append(hook)
        await self._publish_hooks(REPLACED_S)
        for conflict in await self._database.run(conflicts(list(pairs))):
            log.warning(
                "%s: the stricter policy stays. Make the handlers equal; if an application is gone,"
                " run `%s`",
                conflict,
                forget_command("APPLICATION", conflict.job_type),
            )
        stale = job_types.publishers(list(pairs), stale_only=True, limit=STALE_SHOWN)
        for one in await self._database.run(stale):
            log.warning(
                "%s: its arguments, retries and limits no longer apply, but its approval policy"
                " does. Start it again, or run `%s`",
                one,
                forget_command(one.application, one.job_type),
            )
        # Everything is published: no error may end the start for a warning.
        with suppress(LanewayError):
            await warn_of_unknown_types(self._database, registry.end_hooks.values())

    async def _publish_hooks(self, again_s: float) -> None:
        """Publish the end hooks, and delete those that the code no longer has.

        A hook that a live worker handles is not deleted, so look again later.
        """
        await publish_hooks(self._database, self._hooks)
        self._hooks_at = time.monotonic() + again_s

    async def _create_limits(self, registry: Registry, by: str) -> None:
        """Create missing limits that code names, so that they apply from the first job on."""
        named = {name for handler in registry for name in handler.limits}
        declared = registry.limits
        await create_missing(self._database, named | declared.keys(), by, declared)
        if declared:
            for found in await self._database.run(limits.get(declared)):
                _warn_of_limit(declared[found.name], found)

    async def _create_schedules(self, registry: Registry, settings: Settings, by: str) -> None:
        """Create missing schedules; an existing row wins over the code."""
        if not registry.schedules:
            return
        known = await self._database.run(schedules.settings(registry.schedules))
        for schedule in registry.schedules.values():
            handler = registry.get(schedule.job_type)
            try:
                if handler is not None:
                    handler.arguments.validate(schedule.payload or {})
            except InvalidInput as error:
                place = registry.schedule_sources[schedule.name].place
                raise ConfigError(f"{place}: schedule {schedule.name!r}: {error}") from error
            if (found := known.get(schedule.name)) is not None:
                given = registry.schedule_sources[schedule.name].given
                _warn_of_schedule(schedule, given, found)
            elif await self._database.run(schedules.create(schedule, by, settings.payload_limits)):
                _log_created(schedule)

    async def place(self, job_type: str, lane: Lane) -> lanes.ControlState:
        """Put a job type that is in no lane into this one, which is created if it is missing."""
        by = f"worker {self._worker.name}"
        await self._database.run(lanes.assign_types([(lane.name, job_type)], by, lane))
        return await self._database.run(lanes.read())

    async def add(self, handler: Handler) -> None:
        """Publish a handler of Laneway's own, and that this worker runs its jobs."""
        job_type = handler.job_type
        await self._database.run(publish([replace(handler.record(), application=OWN)]))
        self._published[job_type] = OWN
        if not self._is_stopping:
            served = sorted({*self._worker.job_types, job_type})
            self._worker = replace(self._worker, job_types=served)
            await self._database.run(register(self._worker))

    def wake(self) -> None:
        """Report at once."""
        self._requests += 1
        super().wake()

    async def run_once(self) -> float | None:
        if (requests := self._requests) != self._answered or time.monotonic() >= self._report_at:
            is_drained = await self._database.run(touch(*self._presence()))
            self.on_reported(bool(is_drained))
            # A request during the report leads to another one.
            self._answered = requests
        if self._published and time.monotonic() >= self._see_at:
            await self._database.run(job_types.touch_publishers(self._published.items()))
            self._see_at = time.monotonic() + SEE_S
        if self._hooks and time.monotonic() >= self._hooks_at:
            await self._publish_hooks(SEE_S)
        return max(self._report_at - time.monotonic(), SHORTEST_S)

    def due_presence(self) -> Presence | None:
        """The report that the next poll makes along, if it is due soon: that saves a statement."""
        is_due = time.monotonic() >= self._report_at - ALONG_S
        return self._presence() if is_due and not self._is_stopping else None

    def _presence(self) -> Presence:
        room = self._capacity.published() if self._capacity is not None else None
        if room is not None and self._is_leaving:
            room["is_stopping"] = True
        return Presence(self._worker.id, resident_bytes(), room)

    def on_reported(self, is_drained: bool) -> None:
        self._report_at = time.monotonic() + TOUCH_S
        was_drained, self.is_drained = self.is_drained, is_drained
        if is_drained and not was_drained:
            log.info("worker %s is drained: it claims no more jobs", self._worker.name)
        elif was_drained and not is_drained:
            log.info("worker %s was resumed", self._worker.name)
            self._on_resumed()

    def _expect_full(self) -> None:
        """Publish a lack of room soon if it lasts; short ones happen all the time."""
        if not self._expects_full:
            self._expects_full = True
            asyncio.get_running_loop().call_later(FULL_S, self._publish_full)

    def _publish_full(self) -> None:
        self._expects_full = False
        if self._capacity is not None and self._capacity.fullness.longest_s() >= FULL_S / 2:
            self.wake()

    def announce_stop(self) -> None:
        """Publish that the process takes no more jobs while it finishes those it has."""
        self._is_leaving = True
        self.wake()

    async def unregister(self) -> None:
        # A later round would mark the worker as alive again.
        await self.stop()
        await self._database.run(stop(self._worker.id))


async def adopt(
    database: Database,
    named: Sequence[tuple[str, str | None]],
    by: str,
    state: lanes.ControlState,
    declared: Collection[str] = (),
) -> None:
    """Put job types that are in no lane into the named lane; create missing lanes unbounded."""
    # `default` is missing only before the first migration.
    base = state.lanes.get(DEFAULT_LANE, Lane(DEFAULT_LANE))
    like = Lane("new", max_slots=None, poll_interval_ms=base.poll_interval_ms)
    for lane in await database.run(lanes.assign_types(named, by, like)):
        log.warning(
            "lane %s did not exist and was created without a bound: to bound it,"
            " `laneway lanes set %s --max-slots N`%s",
            lane, lane, suggest(lane, {*declared, *state.lanes} - {lane}),
        )  # fmt: skip


def _warn_of_differences(lane: Lane, state: lanes.ControlState, source: str) -> None:
    """Log differences between the configured lane and the database, which decides.

    An operator's change is expected; that changed code has no effect is not.
    """
    if (found := state.lanes.get(lane.name)) is not None:
        level = logging.INFO if is_set_by_operator(found) else logging.WARNING
        _warn("lane", lane.name, source, lane.differences(found), level)
    for job_type in lane.job_types:
        place = state.lane_of(job_type)
        if place not in (lane.name, DEFAULT_LANE):
            log.warning(
                "job type %s is in the lane %s of the database, %s puts it into %s, and"
                " the database decides. To change it: `laneway lanes move %s %s`",
                job_type, place, source, lane.name, quote(job_type), lane.name,
            )  # fmt: skip


def _warn_of_limit(limit: DeclaredLimit, found: Limit) -> None:
    _warn("limit", limit.name, "limits=", limit.differences(found))


def _warn_of_schedule(
    schedule: Schedule, given: Collection[str], found: Mapping[str, object]
) -> None:
    """Log given settings that differ; whether it is enabled is the operator's decision."""
    here = {name: getattr(schedule, name) for name in found if name in given}
    if "tags" in here:
        here["tags"] = tuple(here["tags"])
    if "payload" in here:
        here["payload"] = json.loads(encode_payload(here["payload"]))
    different = [name for name, value in here.items() if value != found[name]]
    if not different:
        return
    text = "; ".join(
        f"{name} is {_schedule_value(found[name])}, configured {_schedule_value(here[name])}"
        if name != "payload"
        else "the payload is another"
        for name in different
    )
    options = " ".join(
        f"{_OPTIONS.get(name, '--' + name.replace('_', '-'))} {quote(value)}"
        for name in different
        for value in _option_values(here[name])
    )
    log.warning(
        "schedule %s in the database differs from the code, and the database decides: %s."
        " To change it: `laneway schedules set %s %s`",
        schedule.name, text, schedule.name, options,
    )  # fmt: skip


def _option_values(value: object) -> list[str]:
    if isinstance(value, tuple):
        return list(value) or ["none"]
    return [_schedule_value(value)]


def _schedule_value(value: object) -> str:
    if isinstance(value, dict):
        # Not for the log: it may be large or secret.
        return "…"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return "none" if value is None else str(value)


def _log_created(schedule: Schedule) -> None:
    next_runs = fires_after(parse(schedule.cron, schedule.timezone), datetime.now(UTC), 1)
    if not schedule.enabled:
        when = "disabled"
    elif next_runs:
        when = f"next run {next_runs[0].at.isoformat(timespec='minutes')}"
    else:
        when = "no next run"
    log.info("created the schedule %s: %s", schedule.name, when)


def _warn(
    kind: str,
    name: str,
    source: str,
    differences: Mapping[str, tuple[object, object]],
    level: int = logging.WARNING,
) -> None:
    if not differences:
        return
    text = "; ".join(
        f"{setting} is {_value(there)}, configured {_value(here)}"
        for setting, (here, there) in differences.items()
    )
    options = " ".join(
        f"--{setting.replace('_', '-')} {_value(here)}"
        for setting, (here, _) in differences.items()
    )
    log.log(
        level,
        "%s %s in the database differs from %s, and the database decides: %s."
        " To change it: `laneway %ss set %s %s`",
        kind, name, source, text, kind, name, options,
    )  # fmt: skip


def _value(value: object) -> object:
    return "unbounded" if value is None else value
