"""The application: builds settings, database, client and worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from laneway import __version__
from laneway.app import open_guard
from laneway.app.job_type import HandlerDecorator, JobType
from laneway.app.schedule_options import CheckOptions, ScheduleOptions
from laneway.client import Client
from laneway.domain.declared import Lane, Limit
from laneway.domain.end_hook import END_STATUSES, EndStatus
from laneway.domain.schedule import Schedule
from laneway.domain.suggestion import suggest
from laneway.engine.code_place import (
    check_names,
    name_of,
    needs_argument,
    needs_function,
    place_of,
    place_of_caller,
    without_parentheses,
)
from laneway.engine.leader.schedule_checks import TIMEOUT_S, make_check
from laneway.engine.registry import HandlerOptions, Registry, ScheduleSource
from laneway.engine.run.middleware import check_middleware
from laneway.errors import ConfigError, InvalidInput
from laneway.extras import install_line, is_installed
from laneway.observability.safe_logger import SafeLogger

if TYPE_CHECKING:
    from fastapi import FastAPI

    from laneway.api.mounted import Mounted
    from laneway.app.end_hook import EndHookDecorator
    from laneway.app.sync import SyncLaneway
    from laneway.config.setting_values import SettingValues
    from laneway.config.settings import Settings
    from laneway.control.resources import Flows, Jobs, Lanes, Limits, Schedules, Webhooks
    from laneway.engine.worker import Worker
    from laneway.store.database import Database

log = SafeLogger("laneway")

# Requests that use the database at the same time.
SERVER_POOL = 10
# The longest waits of a request for a connection and for a statement; together below 15 s.
REQUEST_WAIT_S = 4.0
REQUEST_STATEMENT_S = 10.0
_NO_JOB_TYPE = '@lw.handler needs the job type: write @lw.handler("ingest")'


J = TypeVar("J", bound=JobType[..., Any, Any])
# A function that loads or frees shared resources.
H = TypeVar("H", bound=Callable[[Any], Any])
# The function of a check.
F = TypeVar("F", bound=Callable[..., Any])


class Laneway(Client):
    """An application: registers handlers, submits jobs and runs workers.

    lw = Laneway()

    @lw.handler("greet")
    async def greet(ctx, name: str) -> str:
        return f"hello {name}"
    """

    handlers: Registry
    # The result of `asgi`.
    mounted: Mounted | None = None

    def __init__(
        self,
        database_url: str | None = None,
        *,
        lanes: Sequence[Lane] = (),
        limits: Sequence[Limit] = (),
        **settings: Unpack[SettingValues],
    ) -> None:
        """`lanes` and `limits` are created where the database has none of that name."""
        from laneway.config.settings import Settings

        for name in settings.keys() - Settings.model_fields.keys():
            near = suggest(name, Settings.model_fields)
            raise ConfigError(f"{place_of_caller()}: Laneway(): {name}: is not a setting{near}")
        chosen = Settings.load(database_url=database_url, **settings)
        self.handlers = Registry()
        self.handlers.add_lanes(lanes)
        self.handlers.add_limits(limits)
        super().__init__(lambda: _open(self), chosen, self.handlers)

    @needs_argument(_NO_JOB_TYPE)
    def handler(self, job_type: str, **options: Unpack[HandlerOptions]) -> HandlerDecorator:
        """Registers the function below as the handler of a job type.

        lane, priority, max_retries (3), timeout (seconds), isolation ("async", "thread",
        "process"), retry (RetryPolicy, or a function of the retry's number and the error), stale
        ("heartbeat", "progress"), memory_mb (process only), limits (names held for the whole run),
        approval (True or an Approval), max_age (seconds until a job that has not ended fails),
        retention (Retention), unique_for (seconds in which there is one job per key), unique_by
        (arguments that form the key).
        """
        if job_type == "":
            raise ConfigError(f"{place_of_caller()}: {_NO_JOB_TYPE}")
        if callable(job_type):
            written = f'@lw.handler("{name_of(job_type)}"), with the job type'
            raise without_parentheses("@lw.handler", job_type, written)
        return HandlerDecorator(self, job_type, options)

    def on_end(
        self,
        *job_types: str | JobType[..., Any, Any],
        status: EndStatus | Sequence[EndStatus] = END_STATUSES,
        workspace: str | Sequence[str] | None = None,
        name: str | None = None,
        **options: Unpack[HandlerOptions],
    ) -> EndHookDecorator:
        """Registers the function below as an end hook: `async def fn(ctx, job: EndedJob)`.

        The end of a job submits a job of the hook in the same transaction, whatever ended it.
        `job_types`: all if none is given, except those of end hooks. `status`: completed, failed,
        cancelled. `workspace`: one or several; all if not given. The hook's job runs in the
        workspace of the ended one. `name`: its job type; `on_end.` and the function's name if not
        given. The other options are those of `lw.handler`, without unique_for and unique_by.
        """
        from laneway.app.end_hook import EndHookDecorator

        given: tuple[object, ...] = job_types
        named: list[str] = []
        for one in given:
            if isinstance(one, (str, JobType)):
                named.append(one.job_type if isinstance(one, JobType) else one)
            else:
                written = '@lw.on_end("ingest"), with job types, or @lw.on_end() for all'
                raise without_parentheses("@lw.on_end", one, written)
        return EndHookDecorator(self, named, status, workspace, name, options)

    @needs_function("@lw.middleware")
    def middleware(self, fn: F) -> F:
        """Registers a function around every handler: `async def fn(ctx, call_next)`, or plain.

        The first one registered is the outermost. Async ones run around `async def` handlers,
        plain ones around plain handlers; not around analyses.
        """
        self.handlers.middleware.append(check_middleware(fn))
        return fn

    @needs_function("@lw.on_start")
    def on_start(self, fn: H) -> H:
        """Registers a function that loads shared resources in each process that runs handlers."""
        self.handlers.add_hook("on_start", fn)
        return fn

    @needs_function("@lw.on_stop")
    def on_stop(self, fn: H) -> H:
        """Registers a function that frees shared resources."""
        self.handlers.add_hook("on_stop", fn)
        return fn

    def check(self, name: str, **options: Unpack[CheckOptions]) -> Callable[[F], F]:
        """Registers the function below as a check: schedules that name it submit if it is True.

        It takes nothing, or the resources that `on_start` loaded. It may take `timeout` (30)
        seconds.
        """
        if callable(name):
            written = f'@lw.check("{name_of(name)}"), with the name that schedules use'
            raise without_parentheses("@lw.check", name, written)

        def register(fn: F) -> F:
            try:
                check_names(options, CheckOptions.__annotations__, "@lw.check")
            except InvalidInput as error:
                raise ConfigError(f"{place_of(fn)}: check {name!r}: {error}") from error
            self.handlers.add_check(make_check(name, fn, options.get("timeout", TIMEOUT_S)))
            return fn

        return register

    @overload
    def schedule(self, name: str, job_type: str, /, **options: Unpack[ScheduleOptions]) -> None: ...
    @overload
    def schedule(self, name: str, /, **options: Unpack[ScheduleOptions]) -> Callable[[J], J]: ...
    def schedule(
        self, name: str, job_type: str | None = None, /, **options: Unpack[ScheduleOptions]
    ) -> Callable[[J], J] | None:
        """Declares a schedule of a job type; as a decorator, of the handler below it.

        Workers create it if it is missing and never overwrite an existing row. Options:
        cron, timezone ("UTC"), payload, missed ("coalesce", "skip", "catch_up"), catch_up (10),
        check, priority, max_retries, concurrency_key, workspace, tags, enabled.
        """
        if callable(name):
            written = '@lw.schedule("nightly", cron="0 3 * * *"), with a name and a time'
            raise without_parentheses("@lw.schedule", name, written)

        def declare(of: str, place: str) -> None:
            given = {"check_name" if k == "check" else k: v for k, v in options.items()}
            try:
                check_names(options, ScheduleOptions.__annotations__, "@lw.schedule")
                schedule = Schedule.of({"name": name, "job_type": of, **given})
                if (validate := self.validator_of(of)) is not None:
                    validate(schedule.payload or {})
            except InvalidInput as error:
                raise ConfigError(f"{place}: schedule {name!r}: {error}") from error
            source = ScheduleSource(place, frozenset({"job_type", *given}))
            self.handlers.add_schedule(schedule, source)

        def decorate(handler: J) -> J:
            place = place_of(handler)
            if not isinstance(handler, JobType):
                raise ConfigError(
                    f"{place}: schedule {name!r}: is below @lw.handler: write @lw.schedule above it"
                )
            declare(handler.job_type, place)
            return handler

        if job_type is None:
            return decorate
        declare(job_type, place_of_caller())
        return None

    # Imported where needed below: an application that only submits starts a quarter faster.

    @cached_property
    def lanes(self) -> Lanes:
        """Tunes, drains and resumes lanes."""
        from laneway.control.resources import Lanes

        return Lanes(lambda: self.database)

    @cached_property
    def limits(self) -> Limits:
        """Creates, changes and deletes limits; `lw.limit` holds one."""
        from laneway.control.resources import Limits

        return Limits(lambda: self.database)

    @cached_property
    def schedules(self) -> Schedules:
        """Creates, changes and runs schedules at run time."""
        from laneway.control.resources import Schedules

        return Schedules(lambda: self.database, self.validator_of)

    @cached_property
    def webhooks(self) -> Webhooks:
        """Creates, changes and deletes webhooks, which are sent the ends of jobs."""
        from laneway.control.resources import Webhooks

        return Webhooks(lambda: self.database)

    @cached_property
    def jobs(self) -> Jobs:
        """Lists, explains and changes jobs."""
        from laneway.control.resources import Jobs

        return Jobs(lambda: self.database)

    @cached_property
    def flows(self) -> Flows:
        """Lists, shows, cancels and retries flows; `lw.flow` makes one."""
        from laneway.control.resources import Flows

        return Flows(lambda: self.database)

    @cached_property
    def sync(self) -> SyncLaneway:
        """The same verbs without an event loop."""
        from laneway.app.sync import SyncLaneway

        return SyncLaneway(self)

    def validator_of(self, job_type: str) -> Callable[[object], object] | None:
        """The check of a payload by its handler; None: this application has no such handler."""
        handler = self.handlers.get(job_type)
        return handler.arguments.validate if handler is not None else None

    @property
    def registry(self) -> Registry:
        """The handlers, under the name that child processes read."""
        return self.handlers

    def worker(
        self,
        *,
        only_lanes: Collection[str] | None = None,
        name: str | None = None,
        app: str | None = None,
        max_jobs: int | None = None,
    ) -> Worker:
        """A worker of this application in this process; `start` it, later `stop` it.

        It serves all lanes, or `only_lanes`, and ends after `max_jobs`. `app` ("module:lw") is
        where child processes import the handlers from. `LANEWAY_WORKER=off` keeps it from
        starting where separate processes run the workers.
        """
        from laneway.engine.worker import Worker

        return Worker(
            lambda: self.database.dsn,
            self.settings,
            self.handlers,
            only_lanes=None if only_lanes is None else frozenset(only_lanes),
            name=name,
            app=app,
            is_off=self.settings.worker == "off",
            max_jobs=max_jobs,
        )

    async def ready(self) -> None:
        """Returns if the database is reachable and has the schema that this version needs."""
        from laneway.store.migrate import check

        await asyncio.to_thread(lambda: check(self.database.dsn, __version__))

    def asgi(self) -> Mounted:
        """The whole HTTP API, to be mounted under a prefix: `app.mount("/laneway", lw.asgi())`.

        `laneway.integrations.fastapi.lifespan` closes it with the application; otherwise call
        `close`.
        """
        from laneway.api.mounted import Mounted

        if self.mounted is None:
            make = partial(make_api, lambda: self.database.dsn, self.settings, self)
            self.mounted = Mounted(make, self.close)
        return self.mounted

    async def close(self) -> None:
        """Sends the last wake-ups and closes the connections; the next use opens them again."""
        if self.mounted is not None:
            await self.mounted.close()
        await self.disconnect()

    async def disconnect(self) -> None:
        """`close` without the API that `asgi` serves; the next use may be in another event loop."""
        await super().close()
        await self.leave_loop()

    async def leave_loop(self) -> None:
        """Closes what was opened in this event loop; `lw.sync` stays open."""
        if "_waker" in self.__dict__:
            await self._waker.close()
        if "database" in self.__dict__:
            await self.database.close()
        for cached in ("database", "_waker"):
            self.__dict__.pop(cached, None)

    def reopen(self) -> None:
        """Lets `asgi` serve requests again after `close`; all else needs no call."""
        if self.mounted is not None and self.mounted.is_closed:
            self.mounted.reset()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def _open(app: Laneway) -> Database:
    open_guard.check_open(app)
    from laneway.app.open_database import resolve_dsn
    from laneway.store.database import Database

    settings = app.settings
    return Database(lambda: resolve_dsn(settings), settings)


def make_api(dsn: str | Callable[[], str], settings: Settings, client: Client | None) -> FastAPI:
    """The HTTP API and the MCP endpoint, on a separate connection pool."""
    from laneway.api.app import make_app
    from laneway.store.database import Database

    size = max(settings.pool_size, SERVER_POOL)
    # The server answers before clients and load balancers time out.
    bounded = settings.model_copy(
        update={"statement_timeout": min(settings.statement_timeout, REQUEST_STATEMENT_S)}
    )
    database = Database(dsn, bounded, role="server", size=size, longest_wait_s=REQUEST_WAIT_S)
    app = make_app(settings, database, client)
    if is_installed("mcp"):
        from laneway.mcp.endpoint import install

        install(app)
    else:
        log.info("not serving /mcp, which needs mcp: %s", install_line("mcp"))
    return app
