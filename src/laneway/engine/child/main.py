"""The child process of a worker: runs handlers one after the other until the pool retires it.

The main thread runs handlers, one thread reads messages of the pool, one sends progress. The child
dies with its worker, however the worker ends. run.py is the worker's side.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import os
import queue
import socket
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from types import SimpleNamespace
from typing import Any

from laneway import forks
from laneway.domain.current_claim import bind
from laneway.domain.handler_signals import find_suspension
from laneway.domain.payload import PayloadLimits, decode
from laneway.engine.async_callable import check_awaited
from laneway.engine.child.channel import ChildChannel, ChildJob, ChildOutbox
from laneway.engine.child.handlers import HandlerFinder
from laneway.engine.child.output import mark
from laneway.engine.child.setup import (
    adopt_environment,
    die,
    die_with_parent,
    ignore_signals,
    limit_memory,
    use_one_arena,
)
from laneway.engine.child.wire import HEAD, Message, unpack
from laneway.engine.registry import Registry
from laneway.engine.run import attempt_outcomes
from laneway.engine.run.attempt import Run, current_run
from laneway.engine.run.context import Context, SyncContext
from laneway.engine.run.handler_channel import Interrupted
from laneway.engine.run.middleware import around
from laneway.errors import InvalidInput, StaleAttempt
from laneway.observability import tracing
from laneway.store.leases import Verdict


class Child:
    """Serves the pool at the other end of a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        # A copy: a handler may replace stdout.
        self._output = os.dup(1)
        self._outbox = ChildOutbox(sock)
        self._jobs: queue.SimpleQueue[ChildJob | None] = queue.SimpleQueue()
        self._current: ChildJob | None = None
        self._runner = asyncio.Runner()
        self._resources: dict[Registry, SimpleNamespace] = {}
        handshake = self._receive()
        if handshake is None:
            die()
        die_with_parent(handshake["parent"])
        adopt_environment(handshake)
        self._limits = PayloadLimits(**handshake["limits"])
        self._finder = HandlerFinder(handshake["app"])
        self._has_database: bool = handshake["has_database"]
        self._logs: tuple[str | None, str] | None = handshake["logs"]
        if handshake["memory_mb"] is not None:
            use_one_arena()
        self._outbox.start()
        threading.Thread(target=self._listen, name="laneway listener", daemon=True).start()
        if handshake["memory_mb"] is not None:
            limit_memory(handshake["memory_mb"])

    # Messages of the pool -----------------------------------------------------------------------

    def _receive(self) -> Message | None:
        head = self._read(HEAD.size)
        body = None if head is None else self._read(HEAD.unpack(head)[0])
        return None if body is None else unpack(body)

    def _read(self, size: int) -> bytes | None:
        # Not a buffered file: a daemon thread that holds its lock would break the exit.
        data = bytearray()
        while len(data) < size:
            part = self._sock.recv(min(size - len(data), 1 << 18))
            if not part:
                return None
            data += part
        return bytes(data)

    def _listen(self) -> None:
        try:
            while (message := self._receive()) is not None:
                self._handle(message)
        finally:
            # The worker is gone, or its messages can no longer be read.
            die()

    def _handle(self, message: Message) -> None:
        job = self._current
        match message["kind"]:
            case "job":
                self._current = ChildJob(message)
                self._jobs.put(self._current)
            case "stop" if job is not None and job.number == message["job"]:
                job.stop(message["reason"])
            case "answer" if job is not None and job.number == message["job"]:
                if not job.answered(message) and message.get("undo") is not None:
                    # The handler stopped waiting just as the request was granted: undo it.
                    self._outbox.send({"kind": "ask", "job": job.number, **message["undo"]})
            case "retire":
                self._jobs.put(None)

    # Running handlers ---------------------------------------------------------------------------

    def serve(self) -> None:
        """Run jobs until the pool retires this child."""
        while (job := self._jobs.get()) is not None:
            answer = self._attempt(job)
            job.close()
            self._end_output(job.number)
            self._outbox.send({"kind": "ended", "job": job.number, **answer})
            del job
        self._free()

    def _end_output(self, number: int) -> None:
        """Mark the end of the job's output, so that the worker knows that it has read all."""
        for stream in (sys.stdout, sys.stderr):
            # The handler may have closed it.
            with contextlib.suppress(Exception):
                stream.flush()
        with contextlib.suppress(OSError):
            os.write(self._output, mark(number))

    def _attempt(self, job: ChildJob) -> Message:
        if job.is_stopped():
            return _ended(None)
        try:
            handler, registry = self._finder.find(job.job_type, job.module, job.main)
            self._set_up_logs()
            resources = self._load(registry)
        except BaseException as error:
            # Also SystemExit, which would end the child without a reason.
            return _ended(_described(error), can_go_on=False)
        if job.is_stopped():
            return _ended(None)
        self._outbox.send({"kind": "started", "job": job.number})
        run = Run(job.assignment, handler, job.lane)
        call = around(registry, handler)
        try:
            return _ended(copy_context().run(self._call, job, run, call, resources))
        except MemoryError as error:
            if handler.memory_mb is not None and not error.args:
                error.args = (f"the handler needs more than its memory_mb={handler.memory_mb}",)
            # The memory may still be full.
            return _ended(_described(error), can_go_on=False)
        except BaseException as error:
            # SystemExit leaves an event loop in an undefined state.
            is_plain = isinstance(error, Exception) or find_suspension(error) is not None
            can_go_on = is_plain or not handler.is_async
            return _ended(_verdict_on(run, error), can_go_on=can_go_on)

    def _call(
        self, job: ChildJob, run: Run, call: Callable[..., Any], resources: SimpleNamespace
    ) -> Verdict | None:
        handler, limits = run.handler, self._limits
        current_run.set((run, job.worker))
        bind(run.claim, on_loop=handler.is_async)
        tracing.adopt(job.traceparent)
        try:
            payload = decode(run.payload, limits)
            kwargs = handler.arguments.validate(payload)
            checkpoint = None if run.checkpoint is None else decode(run.checkpoint, limits)
        except InvalidInput as error:
            return attempt_outcomes.of_bad_payload(run, error)
        channel = ChildChannel(
            job,
            handler.results,
            self._outbox,
            payload,
            checkpoint,
            resources,
            limits,
            has_database=self._has_database,
        )
        ctx = Context(channel) if handler.is_async else SyncContext(channel)
        try:
            if isinstance(ctx, Context):
                work = _on_loop(job, call, ctx, kwargs)
                result = self._runner.run(work, context=copy_context())
            else:
                result = call(ctx, **kwargs)
                if forks.is_fork:
                    forks.end()
            ctx.check_end()
        except BaseException as error:
            if forks.is_fork:
                forks.end(error)
            if isinstance(error, StaleAttempt):
                return None
            if isinstance(error, (Interrupted, asyncio.CancelledError)) and job.is_stopped():
                return None
            raise
        check_awaited(result, handler.job_type)
        # ctx.finish already wrote the result in the handler's transaction.
        try:
            text = "null" if ctx.has_finished else handler.results.encode(result, limits)
        except InvalidInput as error:
            return attempt_outcomes.of_bad_result(run, error)
        return Verdict(run.claim, "finish", text)

    def _set_up_logs(self) -> None:
        """Configure logging after the import of the application, which may do so itself."""
        if self._logs is not None:
            from laneway.engine.process.logs import configure_child

            configure_child(*self._logs)
            self._logs = None

    def _load(self, registry: Registry) -> SimpleNamespace:
        """Run the on_start hooks once per child; return the resources."""
        resources = self._resources.get(registry)
        if resources is None:
            resources = SimpleNamespace()
            for hook in registry.on_start:
                self._run_hook(hook, resources)
            self._resources[registry] = resources
        return resources

    def _free(self) -> None:
        for registry, resources in self._resources.items():
            for hook in registry.on_stop:
                try:
                    self._run_hook(hook, resources)
                except Exception:
                    traceback.print_exc()
        self._runner.close()

    def _run_hook(self, hook: Callable[..., Any], resources: SimpleNamespace) -> None:
        outcome = hook(resources)
        if inspect.isawaitable(outcome):

            async def wait() -> None:
                await outcome

            self._runner.run(wait())


async def _on_loop(
    job: ChildJob, fn: Callable[..., Any], ctx: Context, kwargs: dict[str, Any]
) -> object:
    """Run an async handler; its tasks end with it, but the loop stays open for resources."""
    loop, before = asyncio.get_running_loop(), asyncio.all_tasks()
    forks.enter(loop)
    work = loop.create_task(_handled(fn(ctx, **kwargs)))
    job.on_stop(lambda: loop.call_soon_threadsafe(work.cancel))
    try:
        return await work
    finally:
        job.on_stop(None)
        forks.leave(loop)
        left = asyncio.all_tasks() - before
        for other in left:
            other.cancel()
        if left:
            await asyncio.wait(left)


async def _handled(work: Awaitable[object]) -> object:
    """Await a handler; a process that it forked exits here."""
    try:
        result = await work
    except BaseException as error:
        if forks.is_fork:
            forks.end(error)
        raise
    if forks.is_fork:
        forks.end()
    return result


def _ended(verdict: Verdict | str | None, *, can_go_on: bool = True) -> Message:
    if isinstance(verdict, str):
        return {"verdict": "fail", "error": verdict, "again": can_go_on}
    if verdict is None:
        return {"verdict": None, "again": can_go_on}
    return {
        "verdict": verdict.kind,
        "result": verdict.result,
        "error": verdict.error,
        "delay_s": verdict.delay_s,
        "again": can_go_on,
    }


def _verdict_on(run: Run, error: BaseException) -> Verdict | str:
    try:
        return attempt_outcomes.of_error(run, error)
    except Exception:
        return _described(error)


def _described(error: BaseException) -> str:
    """Encode an exception for storage, even if reading its text raises."""
    try:
        return attempt_outcomes.describe(error)
    except Exception as second:
        text = f"its description raised {type(second).__name__}"
        return attempt_outcomes.error_json(type(error).__name__, text)


def main() -> None:
    ignore_signals()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    sock = socket.socket(fileno=int(sys.argv[1]))
    sock.set_inheritable(False)
    kept = forks.Fds(sock.fileno())
    forks.enter(None)
    Child(sock).serve()
    kept.let_go()


if __name__ == "__main__":
    main()
