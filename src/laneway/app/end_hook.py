"""`@lw.on_end`: registers a handler that gets jobs at their end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from laneway.app.job_type import HandlerDecorator
from laneway.domain.end_hook import HOOK_ARGUMENT, HOOK_PREFIX, EndedJob, EndHook, as_names
from laneway.engine.code_place import name_of, place_of
from laneway.engine.registry import Handler, HandlerOptions
from laneway.errors import ConfigError, InvalidInput

if TYPE_CHECKING:
    from laneway.app.laneway import Laneway

# The end of a job would wait for other transactions.
_REFUSED: Final = ("unique_for", "unique_by")


class EndHookDecorator(HandlerDecorator):
    """The result of `lw.on_end(…)`: registers the function below it as an end hook."""

    def __init__(
        self,
        app: Laneway,
        job_types: Sequence[str],
        status: str | Sequence[str],
        workspace: str | Sequence[str] | None,
        name: str | None,
        options: HandlerOptions,
    ) -> None:
        super().__init__(app, name or "", options)
        self._ended_types = tuple(dict.fromkeys(job_types)) or None
        self._statuses = as_names(status) or ()
        self._workspaces = as_names(workspace)

    def _register(self, fn: Callable[..., Any]) -> Handler:
        self._job_type = self._job_type or f"{HOOK_PREFIX}{name_of(fn)}"
        try:
            hook = self._hook()
        except InvalidInput as error:
            raise ConfigError(f"{place_of(fn)}: @lw.on_end: {error}") from error
        handler = super()._register(fn)
        self._app.handlers.end_hooks[hook.name] = hook
        return handler

    def _make(self, fn: Callable[..., Any]) -> Handler:
        from laneway.domain.arguments import Arguments

        handler = super()._make(fn)
        arguments = Arguments.of(handler.fn, default_hints={HOOK_ARGUMENT: EndedJob})
        takes_job = HOOK_ARGUMENT in arguments.names or arguments.accepts_any_name
        takes_more = arguments.required - {HOOK_ARGUMENT}
        if not takes_job or takes_more or not arguments.accepts_object(HOOK_ARGUMENT):
            raise ConfigError(
                f"{place_of(fn)}: @lw.on_end: the function takes the context and the ended job:"
                f" write def {name_of(fn)}(ctx, {HOOK_ARGUMENT}: EndedJob)"
            )
        return replace(handler, arguments=arguments)

    def _hook(self) -> EndHook:
        for option in _REFUSED:
            if option in self._options:
                raise InvalidInput(option, "is not an option of an end hook")
        return EndHook(
            name=self._job_type,
            job_types=self._ended_types,
            statuses=self._statuses,
            workspaces=self._workspaces,
        )
