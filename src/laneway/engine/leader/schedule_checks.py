"""Checks of schedules: functions that decide whether a schedule submits its job."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from laneway.domain.schedule import check_check_name
from laneway.engine.async_callable import is_async
from laneway.engine.code_place import place_of
from laneway.engine.run.exception_text import summary_of
from laneway.engine.run.threads import Threads
from laneway.errors import ConfigError, InvalidInput

TIMEOUT_S: Final = 30.0
LONGEST_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class ScheduleCheck:
    """A function without parameters, or with one for the resources of `@lw.on_start`."""

    name: str
    fn: Callable[..., Any]
    timeout: float
    wants_resources: bool

    async def ask(self, resources: SimpleNamespace, threads: Threads) -> bool:
        """Call the function and return its answer.

        Raises what it raises, TimeoutError after its timeout, TypeError for an answer that is not a
        bool. A plain function runs in a thread, and is left running there after its timeout.
        """
        arguments = (resources,) if self.wants_resources else ()
        try:
            async with asyncio.timeout(self.timeout) as time:
                if is_async(self.fn):
                    answer = await self.fn(*arguments)
                else:
                    answer = await _in_thread(threads, lambda: self.fn(*arguments))
        except TimeoutError:
            if not time.expired():
                raise
            raise TimeoutError(f"no answer within {self.timeout:g} s") from None
        except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
            # A check must not end the worker.
            raise RuntimeError(summary_of(error)) from None
        if not isinstance(answer, bool):
            raise TypeError(f"returned {type(answer).__name__}, not True or False")
        return answer


def make_check(name: str, fn: Callable[..., Any], timeout: float = TIMEOUT_S) -> ScheduleCheck:
    """Make a check and validate its options."""
    try:
        check_check_name(name, "name")
        if not 0 < timeout <= LONGEST_S:
            raise InvalidInput("timeout", f"must be more than 0 and at most {LONGEST_S:.0f} s")
        parameters = inspect.signature(fn).parameters.values()
        needed = [each for each in parameters if each.default is each.empty]
        if len(needed) > 1:
            raise InvalidInput("function", "must take no argument, or only the resources")
    except (InvalidInput, TypeError, ValueError) as error:
        raise ConfigError(f"{place_of(fn)}: check {name!r}: {error}") from error
    return ScheduleCheck(name, fn, float(timeout), bool(needed))


async def _in_thread(threads: Threads, fn: Callable[[], Any]) -> Any:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(answer: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(answer)

    def run() -> None:
        answer, error = None, None
        try:
            answer = fn()
        except BaseException as raised:
            # A future refuses StopIteration.
            error = raised
            if issubclass(type(raised), StopIteration):
                error = RuntimeError(summary_of(raised))
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, answer, error)

    threads.run(run)
    return await done
