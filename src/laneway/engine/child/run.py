"""One job in a child process: from what the child says to the verdict on the attempt."""

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

# Messages of one child handled before everybody else on the event loop has a turn.
FAIR_SHARE = 32
# Time for a child to load the application before it calls a handler that has a timeout.
START_S = 60.0


class ChildRun:
    """A run and the child it is in, if it is in one yet."""

    def __init__(self, run: Run, channel: LoopChannel) -> None:
        self.run = run
        around = current_run.get()
        self.worker = "" if around is None else around[1]
        self.module: str | None = getattr(run.handler.fn, "__module__", None)
        self.child: ChildProcess | None = None
        # The handler was found and is about to be called.
        self.is_started = False
        self.is_killed = False
        # The child did not get as far as calling the handler.
        self.is_late = False
        self.stopped = asyncio.Event()
        self._channel = channel
        self._number = 0
        self._asks: dict[int, asyncio.Task[None]] = {}

    def is_wanted(self) -> bool:
        """False once there is no point in starting it."""
        return self.run.stop_reason is None and not self.is_killed

    async def converse(self, child: ChildProcess) -> Message | None:
        """Passes on what the child says until it says how the job ended; None if it never does."""
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
        heard = 0
        while (message := await child.receive()) is not None:
            if message.get("job") == self._number:
                if message["kind"] == "ended":
                    break
                self._hear(child, message)
            heard += 1
            if heard % FAIR_SHARE == 0:
                await asyncio.sleep(0)
        await child.output.complete(self._number, LINGER_S)
        return message

    def _keep_output(self, text: str) -> None:
        self._channel.log("info", text)

    def _hear(self, child: ChildProcess, message: Message) -> None:
        match message["kind"]:
            case "started":
                self.is_started = True
                self.run.begin()
            case "report":
                self._channel.report(**message["fields"])
            case "log":
                self._channel.log(message["level"], message["message"])
            case "ask":
                # Beside the conversation: while the database is away the child is still heard.
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
        """Tells the handler why to stop, or the run that no handler is needed."""
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
        """Leaves nothing behind, whatever has happened."""
        if self.child is not None:
            # Nobody knows what this child is doing.
            self.child.kill()
            self.child.is_heard.set()
        if asks := list(self._asks.values()):
            for task in asks:
                task.cancel()
            await asyncio.wait(asks)

    def verdict(self, message: Message) -> Verdict | None:
        """The verdict the child came to, by the rules of verdicts.py."""
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

    def death(self, how: str) -> Verdict:
        """The verdict on an attempt whose child died: charged like an exception."""
        text = f"the child process {how}"
        if self.is_late:
            text = f"the child process did not load the application within {START_S:g} s"
        if self.run.handler.memory_mb is not None:
            text += f"; its memory limit was {self.run.handler.memory_mb} MB"
        error = attempt_outcomes.own_error_json("ChildDied", text)
        return Verdict(self.run.claim, "fail", error=error, ran_s=self.run.ran_s)


def _main() -> dict[str, str | None]:
    """Where the worker's main script came from; nowhere if it was typed in."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    return {
        "name": None if spec is None else spec.name,
        "path": getattr(main, "__file__", None),
    }
