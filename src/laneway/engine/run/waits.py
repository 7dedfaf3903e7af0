"""Durable waits: sub-jobs, events and sleeps that a handler asks for by name.

Each wait is stored first. Then `Suspended` ends the attempt, and the job waits without a worker.
The handler runs again from the top, and meets its waits done. The calls are generators of requests
to the worker, so that async and plain handlers share them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from laneway.domain.duration import check_wait
from laneway.domain.handler_signals import Suspended
from laneway.domain.not_a_job import not_a_list
from laneway.domain.payload import decode, encode
from laneway.domain.text import check_text
from laneway.domain.wait import KEY_BYTES, NAME_BYTES, NO_JOB, JobResult
from laneway.engine.run.handler_channel import HandlerChannel
from laneway.errors import InvalidInput, NondeterministicHandler, SubJobsFailed, WaitTimeout
from laneway.store.handler_waits import EndedRow, StoredWait

if TYPE_CHECKING:
    from laneway.client.spec import Given, Request

T = TypeVar("T")
# A procedure: yields requests to the worker and is sent their answers.
Asking: TypeAlias = Generator[tuple[str, dict[str, Any]], Any, T]
Failures = Literal["raise", "return"]

MAX_SUB_JOBS: Final = 100_000
# Sub-jobs sent at once: fewer bytes than a message between processes or to a server may have.
_CHUNK_JOBS: Final = 1000
_CHUNK_BYTES: Final = 2 * 1024 * 1024
_MAX_NAMED: Final = 10


class _Wanted(NamedTuple):
    """A wait as the handler asks for it now."""

    kind: str
    event: str | None = None
    key: str | None = None
    total: int | None = None

    def text(self) -> str:
        match self.kind:
            case "event":
                return f"event {self.event!r}" + (f" with key {self.key!r}" if self.key else "")
            case "sub_jobs":
                return f"{self.total} sub-jobs"
            case _:
                return "a sleep"


class Waits:
    """The waits of one attempt: those stored by earlier attempts, and the names used so far."""

    __slots__ = ("_channel", "_counts", "_stored", "_used", "suspension")

    def __init__(self, channel: HandlerChannel, used: set[str]) -> None:
        """`used`: the names of steps and waits of this attempt, which share one namespace."""
        self._channel = channel
        self._used = used
        # The events waited for without a name, each so often.
        self._counts: dict[str, int] = {}
        # A first attempt has no stored waits to read.
        self._stored: dict[str, StoredWait] | None = {} if channel.claim.attempt == 1 else None
        self.suspension: Suspended | None = None

    # The calls ----------------------------------------------------------------------------------

    def sleep(self, name: str, seconds: float | timedelta) -> Asking[None]:
        """Continue after so many seconds from the first call with this name."""
        pause = check_wait(seconds, "seconds")
        stored = yield from self._enter(name, _Wanted("sleep"))
        if stored is not None and stored.state == "done":
            return
        answer = yield "wait", {"name": name, "kind": "sleep", "seconds": pause}
        if answer["state"] == "open":
            raise self._suspend(name)

    def wait_event(
        self, event: str, key: str, timeout: float | timedelta | None, name: str | None
    ) -> Asking[Any]:
        """The payload of the first event that this job has not taken; WaitTimeout after timeout."""
        check_text(event, "event", max_bytes=NAME_BYTES)
        if key != "":
            check_text(key, "key", max_bytes=KEY_BYTES)
        timeout_s = None if timeout is None else check_wait(timeout, "timeout")
        chosen = self._event_name(event, key) if name is None else name
        wanted = _Wanted("event", event, key)
        stored = yield from self._enter(chosen, wanted)
        if stored is not None and stored.state is not None:
            state, result = stored.state, stored.result
        else:
            answer = yield (
                "wait",
                {"name": chosen, "kind": "event", "seconds": timeout_s, "event": event, "key": key},
            )
            state, result = answer["state"], answer["result"]
        if state == "open":
            raise self._suspend(chosen)
        if state == "timed_out":
            within = "in time" if timeout_s is None else f"within {timeout_s:g} s"
            raise WaitTimeout(f"{wanted.text()} did not come {within}")
        return self._value(result)

    def run_all(
        self, name: str, jobs: Iterable[Given], failures: Failures
    ) -> Asking[list[Any] | list[JobResult]]:
        """Run jobs as sub-jobs of this one; their results in order, when all have ended."""
        if failures not in ("raise", "return"):
            raise InvalidInput("failures", "must be 'raise' or 'return'")
        requests = read_sub_jobs(jobs)
        earlier = yield from self._enter(name, _Wanted("sub_jobs", total=len(requests)))
        stored = 0 if earlier is None else earlier.stored or 0
        if stored < len(requests):
            for offset, part in self._chunks(requests, stored):
                body = {"name": name, "total": len(requests), "offset": offset, "jobs": part}
                yield "sub_jobs", body
            raise self._suspend(name)
        rows: list[EndedRow] = []
        while len(rows) < len(requests):
            page = yield "sub_results", {"name": name, "after": len(rows)}
            rows += [EndedRow(*row) for row in page]
            if not page or any(row.status == "open" for row in rows[-len(page) :]):
                raise self._suspend(name)
        results = [
            self._result(row, request.decode) for row, request in zip(rows, requests, strict=True)
        ]
        if failures == "return":
            return results
        check_completed(name, results)
        return [one.result for one in results]

    def results(self, after: int) -> Asking[list[JobResult]]:
        """The next results of the jobs that this one came after."""
        page = yield "results", {"after": after}
        return [self._result(EndedRow(*row), None) for row in page]

    # Names --------------------------------------------------------------------------------------

    def _enter(self, name: str, wanted: _Wanted) -> Asking[StoredWait | None]:
        """Use a name; returns the wait that an earlier run stored under it."""
        if self.suspension is not None:
            raise self.suspension
        check_text(name, "name", max_bytes=NAME_BYTES)
        if self._stored is None:
            found = yield "waits", {}
            self._stored = {row[0]: StoredWait(*row) for row in found}
        if name in self._used:
            raise InvalidInput(
                f"wait {name!r}",
                "was used already in this attempt: names of steps and waits are unique in a job",
            )
        stored = self._stored.get(name)
        if stored is None:
            # A call without jobs stores nothing, so an earlier run may have passed it.
            if wanted.total != 0:
                self._check_all_used(name)
        else:
            _check_same(stored, wanted)
        self._used.add(name)
        return stored

    def _check_all_used(self, name: str) -> None:
        for earlier in self._stored or ():
            if earlier not in self._used:
                raise NondeterministicHandler(
                    f"the handler asks for the wait {name!r}, but an earlier run asked for"
                    f" {earlier!r} before: names and order of waits must be the same in every run"
                )

    def _event_name(self, event: str, key: str) -> str:
        """The name of a wait that has none: the same in every run of the handler."""
        name = f"{event}:{key}" if key else event
        if len(name.encode()) > NAME_BYTES - 8:
            name = "event:" + hashlib.sha256(name.encode()).hexdigest()
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"

    def _suspend(self, name: str) -> Suspended:
        self.suspension = Suspended(name)
        return self.suspension

    # Jobs and results ---------------------------------------------------------------------------

    def _chunks(
        self, requests: list[Request], stored: int
    ) -> Iterator[tuple[int, list[list[object]]]]:
        """The jobs after the stored ones, in parts, each as JSON values."""
        offset, part, size = stored, list[list[object]](), 0
        for i, request in enumerate(requests[stored:], stored):
            try:
                payload = {} if request.payload is None else request.payload
                text = encode(payload, limits=self._channel.limits)
                options = {k: _plain(v) for k, v in request.options.items() if v is not None}
            except InvalidInput as error:
                raise InvalidInput(f"jobs[{i}].{error.field}", error.rule) from None
            if part and (len(part) == _CHUNK_JOBS or size + len(text) > _CHUNK_BYTES):
                yield offset, part
                offset, part, size = i, [], 0
            part.append([request.job_type, text, options])
            size += len(text)
        yield offset, part

    def _result(self, row: EndedRow, read: Callable[[str], Any] | None) -> JobResult:
        value = None
        if row.status == "completed" and row.result is not None:
            value = self._value(row.result) if read is None else read(row.result)
        job_id = NO_JOB if row.id is None else UUID(str(row.id))
        return JobResult(job_id, row.job_type or "", row.name, row.status or "deleted", value)

    def _value(self, text: str | None) -> Any:
        return None if text is None else decode(text, self._channel.limits)


def read_sub_jobs(jobs: Iterable[Given]) -> list[Request]:
    """The jobs of `ctx.run_all`; InvalidInput names the index of a wrong one."""
    from laneway.client.spec import read_sub_job

    if isinstance(jobs, (str, bytes, Mapping)) or not isinstance(jobs, Iterable):
        raise not_a_list(jobs)
    requests = []
    for i, job in enumerate(jobs):
        if i == MAX_SUB_JOBS:
            raise InvalidInput("jobs", f"a handler runs at most {MAX_SUB_JOBS} sub-jobs at once")
        requests.append(read_sub_job(job, i))
    return requests


def _plain(value: object) -> object:
    """An option as JSON, which is all that a child process can send."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    return value


def _check_same(stored: StoredWait, wanted: _Wanted) -> None:
    earlier = _Wanted(stored.kind, stored.event, stored.key, stored.total)
    if earlier != wanted:
        raise NondeterministicHandler(
            f"the handler asks under the name {stored.name!r} for {wanted.text()}, but an earlier"
            f" run asked for {earlier.text()}: waits must be the same in every run"
        )


def check_completed(name: str, results: list[JobResult]) -> None:
    """Raise SubJobsFailed, with the ids of those that did not complete, if there are any."""
    failed = [one for one in results if not one.is_completed]
    if failed:
        named = ", ".join(f"{one.id} ({one.status})" for one in failed[:_MAX_NAMED])
        more = f" and {len(failed) - _MAX_NAMED} more" if len(failed) > _MAX_NAMED else ""
        raise SubJobsFailed(
            f"{len(failed)} of {len(results)} sub-jobs of {name!r} did not complete: {named}{more}",
            tuple(str(one.id) for one in failed),
        )


async def drive(channel: HandlerChannel, work: Asking[T]) -> T:
    """Make the requests of a procedure."""
    answer: Any = None
    while True:
        try:
            what, body = work.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        answer = await channel.ask(what, **body)


def drive_blocking(channel: HandlerChannel, work: Asking[T]) -> T:
    """`drive` without an event loop."""
    answer: Any = None
    while True:
        try:
            what, body = work.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        answer = channel.ask_blocking(what, **body)
