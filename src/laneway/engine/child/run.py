"""The worker's side of one job in a child process: handles its messages up to the verdict."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from laneway.engine.child.process import LINGER_S, ChildProcess
from laneway.engine.child.wire import INTERRUPTED, Message, pack_error
from laneway.engine.run import attempt_outcomes
from laneway.engine.run.attempt import Run, current_run
from laneway.engine.run.local_channel import LoopChannel
from laneway.store.leases import Verdict

# Messages of one child handled before the event loop runs other tasks.
FAIR_SHARE = 32
# Time for a child to load the application, for handlers that have a timeout.
START_S = 60.0


class ChildRun:
    """A run, and the child process that runs it once there is one."""

    def __init__(self, run: Run, channel: LoopChannel) -> None:
        self.run = run
        around = current_run.get()
        self.worker = "" if around is None else around[1]
        self.module: str | None = getattr(run.handler.fn, "__module__", None)
        self.child: ChildProcess | None = None
        # The child has found the handler and calls it.
        self.is_started = False
        self.is_killed = False
        # The child did not load the application in time.
        self.is_late = False
        self.stopped = asyncio.Event()
        self._channel = channel
        self._number = 0
        self._asks: dict[int, asyncio.Task[None]] = {}

    def is_wanted(self) -> bool:
        """Whether the handler should still be started."""
        return self.run.stop_reason is None and not self.is_killed

    async def run_in(self, child: ChildProcess) -> Message | None:
        """Send the job and handle messages; return the last one, or None if the child dies."""
        self.child = child
        self.is_started = False
        self._number = child.take_job()
        child.output.begin(str(self.run.claim.job_id), self._keep_output)
        child.send(self._job())
        if self.run.stop_reason is not None:
            self.stop()
        if self.run.timeout is None:
            return await self._listen(child)
        starting = asyncio.get_running_loop().call_later(START_S, self._give_up_start, child)
        try:
            return await self._listen(child)
        finally:
            starting.cancel()

    def _give_up_start(self, child: ChildProcess) -> None:
        if not self.is_started:
            self.is_late = True
            child.kill()

    async def _listen(self, child: ChildProcess) -> Message | None:
        count = 0
        while (message := await child.receive()) is not None:
            if message.get("job") == self._number:
                if message["kind"] == "ended":
                    break
                self._handle(child, message)
            count += 1
            if count % FAIR_SHARE == 0:
                await asyncio.sleep(0)
        await child.output.complete(self._number, LINGER_S)
        return message

    def _keep_output(self, text: str) -> None:
        self._channel.log("info", text)

    def _handle(self, child: ChildProcess, message: Message) -> None:
        match message["kind"]:
            case "started":
                self.is_started = True
                self.run.begin()
            case "report":
                self._channel.report(**message["fields"])
            case "log":
                self._channel.log(message["level"], message["message"])
            case "ask":
                # In a task, so that other messages are read while the database is away.
                number = message["ask"]
                task = asyncio.get_running_loop().create_task(
                    self._answer(child, number, message["what"], message["body"]),
                    name="laneway child ask",
                )
                self._asks[number] = task
                task.add_done_callback(lambda _: self._asks.pop(number, None))
            case "abandon" if message["ask"] in self._asks:
                self._asks[message["ask"]].cancel()

    def _job(self) -> Message:
        run = self.run
        return {
            "kind": "job",
            "job": self._number,
            "job_type": run.handler.job_type,
            "module": self.module,
            "main": _main() if self.module == "__main__" else {},
            "seq": run.claim.seq,
            "job_id": str(run.claim.job_id),
            "attempt": run.claim.attempt,
            "payload": run.payload,
            "checkpoint": run.checkpoint,
            "retries": run.retries,
            "max_retries": run.assignment.max_retries,
            "tags": run.assignment.tags,
            "created_by": run.assignment.created_by,
            "lane": run.lane,
            "worker": self.worker,
            "traceparent": None if run.span is None else run.span.traceparent,
        }

    async def _answer(
        self, child: ChildProcess, number: int, what: str, body: dict[str, Any]
    ) -> None:
        message: Message = {"kind": "answer", "job": self._number, "ask": number}
        try:
            message["value"] = await self._channel.ask_in_task(what, body)
            if what == "acquire":
                message["undo"] = {"ask": -number, "what": "release", "body": body}
        except asyncio.CancelledError:
            message["error"] = {"code": INTERRUPTED, "text": self.run.stop_reason or "stopped"}
        except Exception as error:
            message["error"] = pack_error(error)
        child.send(message)

    def stop(self) -> None:
        """Stop the handler, or keep it from being started."""
        self.stopped.set()
        if self.child is not None:
            reason = self.run.stop_reason
            self.child.send({"kind": "stop", "job": self._number, "reason": reason})

    def kill(self) -> None:
        self.is_killed = True
        self.stopped.set()
        if self.child is not None:
            self.child.kill()

    async def close(self) -> None:
        """Clean up: kill a child that was not put back, cancel open requests."""
        if self.child is not None:
            # Its state is unknown.
            self.child.kill()
            self.child.is_read.set()
        if asks := list(self._asks.values()):
            for task in asks:
                task.cancel()
            await asyncio.wait(asks)

    def verdict(self, message: Message) -> Verdict | None:
        """The verdict in the child's last message."""
        if message["verdict"] is None:
            return None
        error = message.get("error")
        return Verdict(
            self.run.claim,
            message["verdict"],
            message.get("result"),
            None if error is None else attempt_outcomes.redacted_error(error),
            message.get("delay_s"),
            self.run.ran_s,
        )

    def death_verdict(self, exit_text: str) -> Verdict:
        """The verdict on an attempt whose child died, charged like an exception."""
        text = f"the child process {exit_text}"
        if self.is_late:
            text = f"the child process did not load the application within {START_S:g} s"
        if self.run.handler.memory_mb is not None:
            text += f"; its memory limit was {self.run.handler.memory_mb} MB"
        error = attempt_outcomes.own_error_json("ChildDied", text)
        return Verdict(self.run.claim, "fail", error=error, ran_s=self.run.ran_s)


def _main() -> dict[str, str | None]:
    """Module name and path of the worker's main script; neither for an interactive interpreter."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    return {
        "name": None if spec is None else spec.name,
        "path": getattr(main, "__file__", None),
    }
