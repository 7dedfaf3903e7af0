"""The handler channel in a child process, and the child's state of its current job."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from laneway import forks
from laneway.domain.claim import Claim
from laneway.domain.payload import PayloadLimits
from laneway.domain.result_type import ResultType
from laneway.engine.child.wire import INTERRUPTED, Message, pack, unpack_error
from laneway.engine.run.handler_channel import Interrupted
from laneway.errors import StaleAttempt
from laneway.store.leases import Assignment

REPORT_EVERY_S = 0.05


class ChildOutbox:
    """Sends messages to the pool from any thread; merges progress within 50 ms."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()
        self._filled = threading.Condition(self._lock)
        self._report: dict[str, Any] = {}
        self._job = 0
        self._next_at = 0.0

    def start(self) -> None:
        threading.Thread(target=self._run, name="laneway outbox", daemon=True).start()

    def send(self, message: Message) -> None:
        """Send at once, after any pending report."""
        with self._lock:
            self._send_report()
            self._sock.sendall(pack(message))

    def report(self, job: int, fields: dict[str, Any]) -> None:
        with self._lock:
            if not self._report:
                self._filled.notify()
            self._job = job
            self._report.update(fields)
            if time.monotonic() >= self._next_at:
                self._send_report()

    def _send_report(self) -> None:
        if self._report:
            fields, self._report = self._report, {}
            self._next_at = time.monotonic() + REPORT_EVERY_S
            self._sock.sendall(pack({"kind": "report", "job": self._job, "fields": fields}))

    def _run(self) -> None:
        with self._lock:
            while True:
                wait_s = self._next_at - time.monotonic()
                if not self._report:
                    self._filled.wait()
                elif wait_s > 0:
                    self._filled.wait(wait_s)
                else:
                    self._send_report()


class ChildJob:
    """The current job of a child, shared by its main thread and its listener thread."""

    def __init__(self, message: Message) -> None:
        self.number: int = message["job"]
        self.job_type: str = message["job_type"]
        self.module: str | None = message["module"]
        self.main: dict[str, str | None] = message["main"]
        self.lane: str = message["lane"]
        self.worker: str = message["worker"]
        self.traceparent: str | None = message["traceparent"]
        self.assignment = Assignment(
            claim=Claim(message["seq"], UUID(message["job_id"]), message["attempt"]),
            rank=0,
            job_type=self.job_type,
            payload=message["payload"],
            checkpoint=message["checkpoint"],
            retries=message["retries"],
            fresh=False,
            max_retries=message["max_retries"],
            tags=tuple(message["tags"]),
            created_by=message["created_by"],
        )
        self.stop_reason: str | None = None
        self.is_over = False
        self._lock = threading.Lock()
        self._cancel: Callable[[], object] | None = None
        self._asks: dict[int, Future[Any]] = {}
        self._ask_ids = itertools.count(1)

    def stop(self, reason: str) -> None:
        """Stop the handler: a plain one at its next call of `ctx`, an async one by cancellation."""
        with self._lock:
            cancel = self._cancel if self.stop_reason is None else None
            self.stop_reason = reason
        if cancel is not None:
            cancel()

    def is_stopped(self) -> bool:
        return self.stop_reason is not None

    def on_stop(self, cancel: Callable[[], object] | None) -> None:
        """Set the function that stops the handler; call it now if the job is already stopped."""
        with self._lock:
            self._cancel = cancel
            is_late = self.stop_reason is not None
        if is_late and cancel is not None:
            cancel()

    def ask(self) -> tuple[int, Future[Any]]:
        """Open a request; return its number and the future of its answer."""
        with self._lock:
            if self.is_over:
                raise StaleAttempt(f"attempt {self.assignment.claim.attempt} is over")
            number, future = next(self._ask_ids), Future[Any]()
            self._asks[number] = future
        return number, future

    def answered(self, message: Message) -> bool:
        """Pass an answer on; return False if the handler does not wait for it any more."""
        with self._lock:
            future = self._asks.pop(message["ask"], None)
        if "error" in message:
            return _resolve(future, error=_error(message["error"], self.stop_reason))
        return _resolve(future, message["value"])

    def close(self) -> None:
        """End the job: a thread that the handler left running gets StaleAttempt."""
        with self._lock:
            self.is_over = True
            asks, self._asks = self._asks, {}
        for future in asks.values():
            error = StaleAttempt(f"attempt {self.assignment.claim.attempt} is over")
            _resolve(future, error=error)


def _resolve(
    future: Future[Any] | None, value: object = None, error: BaseException | None = None
) -> bool:
    if future is None:
        return False
    try:
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
    except InvalidStateError:
        return False
    return True


def _error(packed: dict[str, str], stop_reason: str | None) -> BaseException:
    if packed["code"] == INTERRUPTED:
        return Interrupted(stop_reason or packed["text"])
    return unpack_error(packed)


class ChildChannel:
    """For handlers in a child process: sends every call to the pool."""

    __slots__ = (
        "_began",
        "_job",
        "_outbox",
        "assignment",
        "checkpoint",
        "claim",
        "has_database",
        "lane",
        "limits",
        "payload",
        "resources",
        "results",
    )

    def __init__(
        self,
        job: ChildJob,
        results: ResultType,
        outbox: ChildOutbox,
        payload: Any,
        checkpoint: Any,
        resources: SimpleNamespace,
        limits: PayloadLimits,
        *,
        has_database: bool,
    ) -> None:
        self._job = job
        self._outbox = outbox
        self._began = time.monotonic()
        self.assignment = job.assignment
        self.claim: Claim = job.assignment.claim
        self.lane = job.lane
        self.results = results
        self.has_database = has_database
        self.payload = payload
        self.checkpoint = checkpoint
        self.resources = resources
        self.limits = limits

    @property
    def stop_reason(self) -> str | None:
        return self._job.stop_reason

    @property
    def ran_s(self) -> float:
        return time.monotonic() - self._began

    def report(self, **fields: Any) -> None:
        if forks.is_fork:
            raise forks.refused()
        if not self._job.is_over:
            given = {name: value for name, value in fields.items() if value is not None}
            self._outbox.report(self._job.number, given)

    def log(self, level: str, message: str) -> None:
        if forks.is_fork:
            raise forks.refused()
        # Sent at once: the last lines before a crash matter most.
        if not self._job.is_over:
            line = {"kind": "log", "job": self._job.number, "level": level, "message": message}
            self._outbox.send(line)

    async def ask(self, what: str, **body: Any) -> Any:
        number, future = self._send(what, body)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if future.cancelled():
                self._outbox.send({"kind": "abandon", "job": self._job.number, "ask": number})
            raise

    def ask_blocking(self, what: str, **body: Any) -> Any:
        return self._send(what, body)[1].result()

    def _send(self, what: str, body: dict[str, Any]) -> tuple[int, Future[Any]]:
        if forks.is_fork:
            raise forks.refused()
        number, future = self._job.ask()
        message = {"kind": "ask", "job": self._job.number, "ask": number}
        self._outbox.send({**message, "what": what, "body": body})
        return number, future
