"""The calls of `ctx` that wait: run_all, wait_event and sleep; and results, of what came before."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, overload

from laneway.engine.run.call_check import checked_call
from laneway.engine.run.handler_channel import Interrupted
from laneway.engine.run.handler_state import HandlerState
from laneway.engine.run.waits import Asking, Failures, drive, drive_blocking

if TYPE_CHECKING:
    from laneway.client.spec import Given, NewJobSpec
    from laneway.domain.wait import JobResult

T = TypeVar("T")
# The right forms that errors of wrong calls name.
RUN_ALL: Final = 'ctx.run_all("name", [page.job(n=1)])'
WAIT_EVENT: Final = 'ctx.wait_event("event", key="key", timeout=60)'
SLEEP: Final = 'ctx.sleep("name", 60)'


class AsyncWaitCalls(HandlerState):
    """The waits of an `async def` handler."""

    __slots__ = ()

    async def _wait(self, verb: str, work: Asking[T]) -> T:
        self._check_open(verb)
        return await drive(self._channel, work)

    @overload
    async def run_all(
        self, name: str, jobs: Iterable[NewJobSpec[T]], *, failures: Literal["raise"] = ...
    ) -> list[T]: ...
    @overload
    async def run_all(
        self, name: str, jobs: Iterable[Given], *, failures: Literal["raise"] = ...
    ) -> list[Any]: ...
    @overload
    async def run_all(
        self, name: str, jobs: Iterable[Given], *, failures: Literal["return"]
    ) -> list[JobResult]: ...
    @checked_call(RUN_ALL)
    async def run_all(
        self, name: str, jobs: Iterable[Given], *, failures: Failures = "raise"
    ) -> Any:
        """Run jobs as sub-jobs of this one, and return their results in order.

        The attempt ends here, and the job waits without a worker until all have ended; then the
        handler runs again from the top. Raises SubJobsFailed, which names the jobs that did not
        complete; `failures="return"` returns a JobResult for each job instead.
        """
        return await self._wait("run_all", self._waits.run_all(name, jobs, failures))

    @checked_call(WAIT_EVENT)
    async def wait_event(
        self,
        event: str,
        *,
        key: str = "",
        timeout: float | timedelta | None = None,
        name: str | None = None,
    ) -> Any:
        """Wait for an event of `lw.send_event`, without a worker; return its payload.

        It takes the first event of this name and key that the job has not taken, also one that was
        sent before. Raises TimeoutError after `timeout` seconds.
        """
        return await self._wait("wait_event", self._waits.wait_event(event, key, timeout, name))

    @checked_call(SLEEP)
    async def sleep(self, name: str, seconds: float | timedelta) -> None:
        """Continue after so many seconds; the job waits meanwhile without a worker."""
        await self._wait("sleep", self._waits.sleep(name, seconds))

    async def results(self) -> AsyncIterator[JobResult]:
        """The results of the jobs that this one came after, in order: `async for part in …`."""
        count = 0
        while page := await drive(self._channel, self._waits.results(count)):
            count += len(page)
            for one in page:
                yield one


class SyncWaitCalls(HandlerState):
    """The waits of a plain `def` handler."""

    __slots__ = ()

    def check(self) -> None:
        """End the handler here if it should stop; every other call checks too."""
        if self._channel.stop_reason is not None:
            raise Interrupted(self._channel.stop_reason)

    def _wait(self, verb: str, work: Asking[T]) -> T:
        self.check()
        self._check_open(verb)
        return drive_blocking(self._channel, work)

    @overload
    def run_all(
        self, name: str, jobs: Iterable[NewJobSpec[T]], *, failures: Literal["raise"] = ...
    ) -> list[T]: ...
    @overload
    def run_all(
        self, name: str, jobs: Iterable[Given], *, failures: Literal["raise"] = ...
    ) -> list[Any]: ...
    @overload
    def run_all(
        self, name: str, jobs: Iterable[Given], *, failures: Literal["return"]
    ) -> list[JobResult]: ...
    @checked_call(RUN_ALL)
    def run_all(self, name: str, jobs: Iterable[Given], *, failures: Failures = "raise") -> Any:
        """Run jobs as sub-jobs of this one, and return their results in order.

        The attempt ends here, and the job waits without a worker until all have ended; then the
        handler runs again from the top. Raises SubJobsFailed, which names the jobs that did not
        complete; `failures="return"` returns a JobResult for each job instead.
        """
        return self._wait("run_all", self._waits.run_all(name, jobs, failures))

    @checked_call(WAIT_EVENT)
    def wait_event(
        self,
        event: str,
        *,
        key: str = "",
        timeout: float | timedelta | None = None,
        name: str | None = None,
    ) -> Any:
        """Wait for an event of `lw.send_event`, without a worker; return its payload.

        It takes the first event of this name and key that the job has not taken, also one that was
        sent before. Raises TimeoutError after `timeout` seconds.
        """
        return self._wait("wait_event", self._waits.wait_event(event, key, timeout, name))

    @checked_call(SLEEP)
    def sleep(self, name: str, seconds: float | timedelta) -> None:
        """Continue after so many seconds; the job waits meanwhile without a worker."""
        self._wait("sleep", self._waits.sleep(name, seconds))

    def results(self) -> Iterator[JobResult]:
        """The results of the jobs that this one came after, in order."""
        count = 0
        while page := drive_blocking(self._channel, self._waits.results(count)):
            self.check()
            count += len(page)
            yield from page
