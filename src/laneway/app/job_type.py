"""`JobType`: what `@lw.handler` makes of a function, typed by its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from copy import copy
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, Unpack, cast, overload

from typing_extensions import ParamSpec, TypeVar

from laneway.client.flow_draft import FLOW_JOB_OPTIONS, HandlerJobOptions
from laneway.client.handle import JobHandle, SyncJobHandle
from laneway.client.spec import JobOptions, NewJobSpec, SubmitOptions, check_options
from laneway.domain.suggestion import other_word
from laneway.engine.async_callable import check_awaited
from laneway.engine.code_place import needs_function
from laneway.engine.registry import Handler, HandlerOptions, make_handler
from laneway.errors import InvalidInput

if TYPE_CHECKING:
    from laneway.app.laneway import Laneway
    from laneway.domain.approval import Analysis
    from laneway.engine.run.context import Context, SyncContext

    class EitherContext(Context, SyncContext):  # type: ignore[misc]
        """Fits a first parameter that takes one of the contexts, and none that is an argument."""


# The parameters of a handler without its context, its result, and what calling it returns.
P = ParamSpec("P", default=...)
R = TypeVar("R", default=Any)
C = TypeVar("C", default=Any)
A = TypeVar("A", bound="Callable[..., Analysis | Coroutine[Any, Any, Analysis]]")


# Calls of other job queues, and ours that do the same.
_OTHER_CALLS: Final = {
    "delay": "submit(…)",
    "apply_async": "options(…).submit(…)",
    "s": "job(…)",
    "si": "job(…)",
    "signature": "job(…)",
}


def _needs_context(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call of a handler, which names the form that makes a job if its context is missing."""

    @wraps(call)
    def checked(self: JobType[..., Any, Any], /, *args: Any, **kwargs: Any) -> Any:
        if not args:
            name = self.__name__
            cure = f"write {name}.job(…) for a job of a flow, or {name}.submit(…)"
            raise InvalidInput("ctx", f"is missing: {name}(ctx, …) calls the function; {cure}")
        return call(self, *args, **kwargs)

    return checked


async def _with_check(ctx: Context, work: Any, job_type: str) -> Any:
    """Await a handler under test, and refuse calls of `ctx` without `await` as a worker does."""
    result = await work
    ctx.check_end()
    check_awaited(result, job_type)
    return result


class JobType(Generic[P, R, C]):
    """Replaces the function under `@lw.handler`: call it, or submit jobs of it.

    job = await ingest.submit(path="a.pdf")
    pages = await job.wait(timeout=60)
    """

    def __init__(self, app: Laneway, handler: Handler) -> None:
        self._app = app
        self.handler = handler
        self.job_type = handler.job_type
        self.__doc__ = handler.fn.__doc__
        self.__name__ = getattr(handler.fn, "__name__", handler.job_type)
        self.__wrapped__ = handler.fn
        self._options: SubmitOptions = {}
        # Its name within a flow.
        self._name: str | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            written = _OTHER_CALLS.get(name)
            cure = "" if written is None else f": write {self.__name__}.{written}"
            raise AttributeError(f"JobType has no attribute {name!r}{cure}", name=name, obj=self)

    def __call__(self, ctx: Any, /, *args: P.args, **kwargs: P.kwargs) -> C:
        """Calls the function itself, as tests do."""
        # Only fake contexts have it.
        is_for_async = getattr(type(ctx), "is_for_async", None)
        if is_for_async is not None and is_for_async != self.handler.is_async:
            kind, fitting = (
                ("an async", "FakeContext")
                if self.handler.is_async
                else ("a plain", "FakeSyncContext")
            )
            raise InvalidInput(
                "ctx",
                f"is a {type(ctx).__name__}, but {self.__name__} is {kind} def: use {fitting}",
            )
        result: C = self.handler.fn(ctx, *args, **kwargs)
        return cast("C", _with_check(ctx, result, self.job_type)) if is_for_async else result

    if not TYPE_CHECKING:
        __call__ = _needs_context(__call__)

    @needs_function("@{0.__name__}.analyze")
    def analyze(self, fn: A) -> A:
        """Registers the function that plans and estimates each job before its approval."""
        self._app.handlers.add_analysis(self.handler, fn)
        return fn

    def options(self, **options: Unpack[HandlerJobOptions]) -> JobType[P, R, C]:
        """A copy that submits with these options of `lw.submit`: priority, delay, created_by …

        `name` is the name of the job within a flow, for `flow.add`.
        """
        check_options(options, HandlerJobOptions.__annotations__)
        made = copy(self)
        name = options.pop("name", self._name)
        made._options = cast("SubmitOptions", {**self._options, **options})
        made._name = name
        return made

    async def submit(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Submits a job with these arguments."""
        payload = self._payload(args, kwargs)
        self._refuse_name()
        handle = await self._app.submit(self.job_type, payload, **self._options)
        return handle.decoded_by(self._decode)

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> NewJobSpec[R]:
        """A job with these arguments that is not submitted yet: for `lw.submit_many`, flows …"""
        self._refuse_name()
        return self._spec(args, kwargs)

    def _spec(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> NewJobSpec[R]:
        payload = self._payload(args, kwargs)
        for name in self._options.keys() - JobOptions.__annotations__.keys():
            raise InvalidInput(name, "is not an option of one job: give it to lw.submit_many")
        options = cast("JobOptions", self._options)
        return NewJobSpec(self.job_type, payload, decode=self._decode, **options)

    def flow_job(
        self, args: tuple[Any, ...], given: Mapping[str, Any]
    ) -> tuple[NewJobSpec[R], dict[str, Any]]:
        """A job for `flow.add`, and the options among its arguments.

        A name that the handler takes is its argument.
        """
        taken = self.handler.arguments.names
        options = {name: given[name] for name in FLOW_JOB_OPTIONS if name in given.keys() - taken}
        arguments = {name: value for name, value in given.items() if name not in options}
        if not self.handler.arguments.accepts_any_name:
            for name in arguments.keys() - taken:
                _refuse_option(name)
        if self._name is not None:
            options = {"name": self._name, **options}
        return self._spec(args, arguments), options

    def _refuse_name(self) -> None:
        if self._name is not None:
            raise InvalidInput("name", "is an option of a job in a flow: give it to flow.add")

    @property
    def sync(self) -> SyncJobType[P, R]:
        """`submit` without an event loop."""
        return SyncJobType(self)

    def submit_blocking(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> SyncJobHandle[R]:
        """Submits a job in the background thread of `lw.sync`."""
        payload = self._payload(args, kwargs)
        self._refuse_name()
        handle = self._app.sync.submit(self.job_type, payload, **self._options)
        return handle.decoded_by(self._decode)

    def _payload(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, object]:
        """The arguments as JSON values; InvalidInput names the wrong one."""
        if args:
            self._refuse_payload(args)
            try:
                bound = inspect.signature(self.handler.fn).bind_partial(None, *args)
            except TypeError as error:
                raise InvalidInput("payload", f"the arguments do not fit: {error}") from None
            _, *names = bound.arguments
            for name in kwargs.keys() & names:
                raise InvalidInput(f"payload.{name}", "is given twice, by position and by name")
            kwargs = {**dict(zip(names, args, strict=True)), **kwargs}
        arguments = self.handler.arguments
        for name in kwargs:
            if name not in arguments.names and not arguments.accepts_any_name:
                from laneway.domain.payload_check import UNKNOWN
                from laneway.domain.payload_problems import unknown_argument

                missing = arguments.required - kwargs.keys()
                rule, _ = unknown_argument(name, arguments.names, missing)
                if name in SubmitOptions.__annotations__:
                    rule = f"{UNKNOWN}; as an option, write {self.__name__}.options({name}=…)"
                raise InvalidInput(f"payload.{name}", rule)
        return arguments.encode(kwargs)

    def _refuse_payload(self, args: tuple[Any, ...]) -> None:
        """InvalidInput for one dict of arguments, unless the first argument may be a dict."""
        first, arguments = args[0], self.handler.arguments
        if len(args) > 1 or not isinstance(first, dict) or first.keys().isdisjoint(arguments.names):
            return
        name = next(iter(list(inspect.signature(self.handler.fn).parameters)[1:]), "")
        if not arguments.accepts_object(name):
            rule = f"{self.__name__} takes its arguments by name, not as a dict"
            raise InvalidInput("payload", f"{rule}: write {next(iter(first))}=…, or **payload")

    @cached_property
    def _decode(self) -> Callable[[str], R]:
        """Reads a result by the return hint."""
        return partial(self.handler.results.decode, limits=self._app.settings.payload_limits)


def _refuse_option(name: str) -> None:
    """InvalidInput for an argument of `flow.add` that is an option elsewhere."""
    if name in SubmitOptions.__annotations__:
        raise InvalidInput(name, f"is an option of the flow: write lw.flow(…, {name}=…)")
    if (known := other_word(name)) in FLOW_JOB_OPTIONS:
        raise InvalidInput(name, f"is not an option of submit; did you mean {known}?")


class SyncJobType(Generic[P, R]):
    """`ingest.sync`: submits jobs without an event loop."""

    def __init__(self, of: JobType[P, R, Any]) -> None:
        self._of = of

    def submit(self, /, *args: P.args, **kwargs: P.kwargs) -> SyncJobHandle[R]:
        """Submits a job with these arguments."""
        return self._of.submit_blocking(args, kwargs)


class HandlerDecorator:
    """The result of `lw.handler(…)`: registers the function below it."""

    def __init__(self, app: Laneway, job_type: str, options: HandlerOptions) -> None:
        self._app = app
        self._job_type = job_type
        self._options = options

    @overload
    def __call__(
        self, fn: Callable[Concatenate[EitherContext, P], Coroutine[Any, Any, R]], /
    ) -> JobType[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[EitherContext, P], R], /) -> JobType[P, R, R]: ...
    def __call__(self, fn: Callable[..., Any], /) -> JobType[..., Any, Any]:
        # A function may handle two job types.
        plain = fn.handler.fn if isinstance(fn, JobType) else fn
        return JobType(self._app, self._register(plain))

    def _register(self, fn: Callable[..., Any]) -> Handler:
        handler = self._make(fn)
        self._app.handlers.add(handler)
        return handler

    def _make(self, fn: Callable[..., Any]) -> Handler:
        return make_handler(self._job_type, fn, **self._options)
