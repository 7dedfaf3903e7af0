"""Runs handlers on the event loop, in a thread or in a child process, to exactly one verdict."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from functools import partial
from typing import Any

from laneway import forks
from laneway.domain.claim import Claim
from laneway.domain.current_claim import bind
from laneway.domain.payload import decode
from laneway.engine.async_callable import check_awaited
from laneway.engine.child.runs import ChildRuns
from laneway.engine.lease.attempt_log import LossLog
from laneway.engine.run import attempt_outcomes
from laneway.engine.run.attempt import Run, StopReason, current_run
from laneway.engine.run.context import AnyContext, Context, SyncContext
from laneway.engine.run.exception_text import summary_of
from laneway.engine.run.handler_channel import Interrupted
from laneway.engine.run.inline_tasks import InlineTasks
from laneway.engine.run.local_channel import LoopChannel, ThreadChannel
from laneway.engine.run.middleware import around
from laneway.engine.run.retry_decision import off_loop
from laneway.engine.run.threads import Threads
from laneway.engine.run.tools import RunTools
from laneway.errors import InvalidInput
from laneway.observability import tracing
from laneway.observability.safe_logger import SafeLogger
from laneway.store.leases import Assignment, Verdict

log = SafeLogger("laneway")

CLOSE_S = 0.5


class Executor:
    """Starts claimed jobs, stops them on request, and passes on one verdict for each."""

    def __init__(self, tools: RunTools) -> None:
        self._registry, self._handler_of = tools.registry, tools.handler_of
        self._capacity = tools.capacity
        self._requests = tools.requests
        self._completer = tools.completer
        self._pool = tools.pool
        self._limits = tools.settings.payload_limits
        self._grace_s = tools.settings.cancel_grace
        self._resources = tools.resources
        self._marker = tools.marker
        self._name = tools.name
        self._events = tools.events
        self._is_traced = False
        self._loss_log = LossLog()
        self._threads = Threads()
        self._children = ChildRuns(self, tools)
        self._loop = asyncio.get_running_loop()
        self.inline_tasks = InlineTasks(self._loop, self._run_on_loop, self._on_broken)
        self.active: dict[tuple[int, int], Run] = {}
        self.idle = asyncio.Event()
        self.idle.set()

    def start(
        self,
        assignments: Iterable[Assignment],
        lane: str,
        timeouts: Mapping[Claim, float] | None = None,
    ) -> None:
        """Start claimed jobs, whose room is already taken.

        `timeouts`, in seconds, apply to handlers without a timeout.
        """
        self.idle.clear()
        self._is_traced = tracing.is_on()
        on_loop: deque[Run] = deque()
        for assignment in assignments:
            run = Run(assignment, self._handler_of(assignment.job_type), lane)
            self.active[run.claim.seq, run.claim.attempt] = run
            if assignment.changed_since_approval:
                self.end(run, attempt_outcomes.of_changed_since_approval(run.claim))
                continue
            if timeouts is not None and run.timeout is None:
                run.timeout = timeouts.get(run.claim)
            if run.timeout is not None:
                run.on_begin = partial(self._start_timeout, run, run.timeout)
            if run.is_suspect:
                run.place = "child"
            elif run.handler.isolation == "async":
                on_loop.append(run)
                continue
            try:
                self._begin(run)
            except Exception as error:
                # Out of threads or memory: fail this job, not the whole batch.
                log.error("job %s could not be started: %s", run.claim.job_id, summary_of(error))
                self.end(run, attempt_outcomes.of_error(run, error))
        if on_loop:
            self.inline_tasks.start(on_loop)

    def _begin(self, run: Run) -> None:
        if run.place == "child":
            self._spawn(run, self._children.run_suspect(run))
        elif run.handler.isolation == "async":
            self.inline_tasks.start(deque([run]))
        elif run.handler.isolation == "thread":
            self._run_in_thread(run)
        else:
            self._spawn(run, self._children.run(run))

    def enter(self, run: Run) -> None:
        """Bind the current context to the run, for log lines and traces."""
        current_run.set((run, self._name))
        bind(run.claim, on_loop=run.handler.is_async)
        if self._is_traced:
            run.span = tracing.begin(
                run.handler.job_type,
                run.claim.job_id,
                run.claim.attempt,
                lane=run.lane,
                worker=self._name,
                origin=run.traceparent,
            )

    def _start_timeout(self, run: Run, timeout_s: float) -> None:
        """Start the timeout when the handler is called: waiting for a thread does not count."""
        if not run.ended:
            left_s = timeout_s - (run.ran_s or 0.0)
            run.timer = self._loop.call_later(left_s, self.stop, run, "timeout")

    def stop(self, run: Run, reason: StopReason) -> None:
        """Ask a handler to stop; abandon it if it has not stopped within the grace."""
        if run.ended or (run.stop_reason is not None and reason != "fenced"):
            return
        if run.is_finishing and reason == "fenced":
            # Its own finish deleted the lease, or its end will be refused anyway.
            return
        run.stop_reason = reason
        if run.stopper is not None:
            run.stopper()
        run.cancel_requests()
        if run.grace is None:
            grace = 0.0 if reason == "fenced" else self._grace_s
            run.grace = self._loop.call_later(grace, self.abandon, run)

    def stop_by_claim(self, seq: int, attempt: int, answer: str) -> None:
        """Stop an attempt with a cancellation request or a lost lease, and log it."""
        run = self.active.get((seq, attempt))
        if run is None:
            return
        reason: StopReason = "cancel" if answer == "cancel_requested" else "fenced"
        before = run.stop_reason
        self.stop(run, reason)
        if run.stop_reason != before:
            self._loss_log.log(run.handler.job_type, run.claim, answer)

    async def close(self) -> None:
        """Cancel what is still running; its jobs have ended or their leases will lapse."""
        self._threads.close()
        for run in self.active.values():
            for ask in list(run.open_requests):
                ask.cancel()
        for task in self.inline_tasks.tasks:
            task.cancel()
        if self.inline_tasks.tasks:
            # Do not wait longer for a handler that swallows its cancellation.
            await asyncio.wait(self.inline_tasks.tasks, timeout=CLOSE_S)
        await self._requests.close()
        self._loss_log.close()

    # On the event loop ------------------------------------------------------------------------

    def _spawn(self, run: Run, work: Any) -> None:
        task = self._loop.create_task(work)
        self.inline_tasks.tasks.add(task)
        task.add_done_callback(partial(self._task_ended, run))

    def _task_ended(self, run: Run, task: asyncio.Task[None]) -> None:
        self.inline_tasks.tasks.discard(task)
        if run.place == "returned":
            run.place = "worker"
            self._begin(run)
            return
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        self._on_broken(run, error or RuntimeError("ended without a verdict"))

    def _on_broken(self, run: Run, error: BaseException) -> None:
        """End a run without a verdict: cancelled before its first step, or a bug of Laneway."""
        if self.active.get((run.claim.seq, run.claim.attempt)) is run:
            log.error(
                "attempt %s of job %s was interrupted: %s",
                run.claim.attempt,
                run.claim.job_id,
                summary_of(error),
            )
            self.end(run, attempt_outcomes.of_stop(run) or attempt_outcomes.of_error(run, error))

    async def _run_on_loop(self, run: Run) -> None:
        handler = run.handler
        if run.is_stopped:
            # Stopped before its handler was called.
            return self.end(run, attempt_outcomes.of_stop(run))
        self.enter(run)
        run.begin(self._marker)
        try:
            payload = decode(run.payload, self._limits)
            kwargs = handler.arguments.validate(payload)
            checkpoint = None if run.checkpoint is None else decode(run.checkpoint, self._limits)
        except InvalidInput as error:
            return self.end(run, attempt_outcomes.of_bad_payload(run, error))
        except BaseException as error:
            # Raised by the user's validator.
            of_error = partial(attempt_outcomes.of_error, run, error)
            return self.end(run, await self.judge(run, of_error))
        channel = LoopChannel(
            run, self._requests, payload, checkpoint, self._resources, self._limits
        )
        try:
            ctx = Context(channel)
            work = around(self._registry, handler)(ctx, **kwargs)
            if self._marker is not None:
                work = self._marker.watch(run.claim.seq, work)
            result = await work
            if forks.is_fork:
                forks.end()
            verdict = self._returned(run, ctx, result)
        except BaseException as error:
            is_cancelled = isinstance(error, asyncio.CancelledError)
            if forks.is_fork and not is_cancelled:
                forks.end(error)
            if run.is_closed and not is_cancelled:
                raise
            # SystemExit or GeneratorExit of a handler ends its job, nothing else.
            of = attempt_outcomes.of_interruption if is_cancelled else self._raised
            verdict = await self.judge(run, partial(of, run, error))
        if run.has_reports and verdict is not None:
            await self.flush_reports(run)
        self.end(run, verdict)

    async def judge(self, run: Run, judge: Callable[[], Verdict | None]) -> Verdict | None:
        """The verdict on a handler that has ended, which its retry function may take time for."""
        try:
            return await off_loop(run, judge)
        except asyncio.CancelledError:
            if not run.is_stopped:
                raise
            return attempt_outcomes.of_stop(run)

    async def flush_reports(self, run: Run) -> None:
        """Store the reports before the verdict: after it they would be refused."""
        if run.is_finishing:
            # ctx.finish stored them already.
            return
        # A report that cannot be stored must not block the verdict.
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await asyncio.shield(self._requests.reporter.flush(run.claim))

    def _returned(self, run: Run, ctx: AnyContext, result: object) -> Verdict | None:
        ctx.check_end()
        check_awaited(result, run.handler.job_type)
        if run.stop_reason in ("timeout", "fenced"):
            return attempt_outcomes.of_stop(run)
        try:
            # ctx.finish already wrote the result in the handler's transaction.
            text = "null" if run.is_finishing else run.handler.results.encode(result, self._limits)
        except InvalidInput as error:
            return attempt_outcomes.of_bad_result(run, error)
        kind = "analyzed" if run.handler.is_analysis else "finish"
        return Verdict(run.claim, kind, text, None, None, run.ran_s)

    def _raised(self, run: Run, error: BaseException) -> Verdict | None:
        if run.stop_reason in ("timeout", "fenced", "shutdown"):
            return attempt_outcomes.of_stop(run)
        return attempt_outcomes.of_error(run, error)

    # In a thread ------------------------------------------------------------------------------

    def _run_in_thread(self, run: Run) -> None:
        if run.on_begin is not None:
            # Timers must be set on the loop.
            run.on_begin = partial(self._call_on_loop, run.on_begin)

        def work() -> None:
            verdict = copy_context().run(self._call, run)
            self._call_on_loop(partial(self._thread_ended, run, verdict))

        self._threads.run(work)

    def _call_on_loop(self, call: Callable[[], object]) -> None:
        # The loop may be closed while threads still run.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call)

    def _call(self, run: Run) -> Verdict | None:
        self.enter(run)
        run.begin(self._marker)
        try:
            payload = decode(run.payload, self._limits)
            kwargs = run.handler.arguments.validate(payload)
            checkpoint = None if run.checkpoint is None else decode(run.checkpoint, self._limits)
        except InvalidInput as error:
            return attempt_outcomes.of_bad_payload(run, error)
        except BaseException as error:
            return attempt_outcomes.of_error(run, error)
        channel = ThreadChannel(
            self._loop, run, self._requests, payload, checkpoint, self._resources, self._limits
        )
        try:
            ctx = SyncContext(channel)
            result = around(self._registry, run.handler)(ctx, **kwargs)
            if forks.is_fork:
                forks.end()
            return self._returned(run, ctx, result)
        except Interrupted as error:
            return attempt_outcomes.of_interruption(run, error)
        except BaseException as error:
            if forks.is_fork:
                forks.end(error)
            # SystemExit and KeyboardInterrupt of a handler end its job, not the worker.
            return self._raised(run, error)

    def _thread_ended(self, run: Run, verdict: Verdict | None) -> None:
        if run.timer is not None:
            # The handler returned in time, even if the database is slow now.
            run.timer.cancel()
        if run.has_reports and verdict is not None and not run.ended:
            self._spawn(run, self._end_after_reports(run, verdict))
        else:
            self.end(run, verdict)

    async def _end_after_reports(self, run: Run, verdict: Verdict) -> None:
        await self.flush_reports(run)
        self.end(run, verdict)

    # The end ----------------------------------------------------------------------------------

    def abandon(self, run: Run) -> None:
        """End the job after the grace, even if its handler still runs."""
        if run.handler.isolation == "process" or run.place == "child":
            self._pool.kill(run)
            return
        if not run.ended:
            self._events.on_abandoned(run)
            if run.stop_reason == "timeout" and run.handler.retry_fn is not None:
                task = self._loop.create_task(self._abandon_by_function(run))
                self.inline_tasks.tasks.add(task)
                task.add_done_callback(self.inline_tasks.tasks.discard)
                return
            self._conclude(run, attempt_outcomes.of_stop(run))
            run.cancel_requests()

    async def _abandon_by_function(self, run: Run) -> None:
        verdict = await off_loop(run, partial(attempt_outcomes.of_stop, run))
        if not run.ended:
            self._conclude(run, verdict)
            run.cancel_requests()

    @property
    def abandoned(self) -> Counter[str]:
        """The number of handlers still running after their jobs ended, by isolation."""
        return Counter(run.handler.isolation for run in self.active.values() if run.ended)

    @property
    def is_done(self) -> bool:
        """Whether every job has ended, even if abandoned handlers still run."""
        return all(run.ended for run in self.active.values())

    def _conclude(self, run: Run, verdict: Verdict | None) -> None:
        run.ended = True
        for timer in (run.timer, run.grace):
            if timer is not None:
                timer.cancel()
        if run.is_finishing:
            verdict = attempt_outcomes.of_finish_in_transaction(run, verdict)
        elif run.stop_reason == "fenced":
            # The write would be refused.
            verdict = None
        if run.span is not None:
            run.span.end(verdict.kind if verdict else "void", verdict.error if verdict else None)
        if verdict is not None:
            if verdict.error is not None:
                self._completer.failures.note(run, verdict)
            self._completer.add(verdict)
        else:
            self._events.on_void(run.claim)

    def end(self, run: Run, verdict: Verdict | None) -> None:
        """Free the room of a run whose handler has returned."""
        if not run.ended:
            self._conclude(run, verdict)
        del self.active[run.claim.seq, run.claim.attempt]
        if self._marker is not None and run.mark is not None:
            self._marker.end(run.mark)
        self._capacity.release(run.lane, run.handler.isolation)
        self._events.on_room()
        if not self.active:
            self.idle.set()
