"""The application's verbs without an event loop: `lw.sync`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from laneway.client.client import Client
from laneway.client.sync import SyncClient
from laneway.control.resources import Jobs, Lanes, Limits, Schedules

if TYPE_CHECKING:
    from laneway.app.laneway import Laneway


class _Blocking:
    """A resource whose verbs are blocking calls."""

    def __init__(self, client: SyncLaneway, of: Callable[[Client], object]) -> None:
        self._client = client
        self._of = of

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def call(*args: object, **kwargs: object) -> Any:
            return self._client.run(lambda client: getattr(self._of(client), verb)(*args, **kwargs))

        return call


class SyncLaneway(SyncClient):
    """The verbs of an application as blocking calls, from any thread."""

    def __init__(self, app: Laneway) -> None:
        super().__init__(app)
        self._validator_of = app.validator_of

    @cached_property
    def lanes(self) -> Any:
        """`lw.lanes` with blocking verbs."""
        return _Blocking(self, lambda client: Lanes(lambda: client.database))

    @cached_property
    def limits(self) -> Any:
        return _Blocking(self, lambda client: Limits(lambda: client.database))

    @cached_property
    def schedules(self) -> Any:
        return _Blocking(
            self, lambda client: Schedules(lambda: client.database, self._validator_of)
        )

    @cached_property
    def jobs(self) -> Any:
        return _Blocking(self, lambda client: Jobs(lambda: client.database))
