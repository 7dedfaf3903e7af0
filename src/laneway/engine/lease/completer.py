"""Writes verdicts in batches, and repeats each write until it is accepted or fenced."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import ClassVar

from laneway.domain.text import visible
from laneway.engine.lease.attempt_log import FailureLog
from laneway.engine.lease.attempt_store import AttemptStore
from laneway.engine.run.attempt_outcomes import ROLLED_BACK
from laneway.engine.service import Service
from laneway.errors import DatabaseUnavailable
from laneway.observability.log_throttle import LogThrottle
from laneway.observability.safe_logger import SafeLogger
from laneway.store.leases import Verdict, WriteResult

log = SafeLogger("laneway")

MAX_BATCH = 1000
# Batches are never made smaller than this.
MIN_BATCH = 100
# The size of results and errors in a batch. Statements slow down faster than they grow (16 MB takes
# half a second, 256 MB half a minute), and all other outcomes wait meanwhile.
MAX_CHARACTERS = 16_000_000
BUSY_S = 0.05
# The kind of a verdict that the database refuses, without its result.
_REFUSED_KINDS = {"finish": "giveup", "analyzed": "giveup", "wait": "fail"}


class Completer(Service):
    """Sends one batch at a time; attempts that end meanwhile go into the next."""

    name: ClassVar[str] = "completer"

    def __init__(
        self,
        store: AttemptStore,
        warnings: LogThrottle,
        on_settled: Callable[[list[Verdict], list[WriteResult]], None],
        batch_size: Callable[[], int] = lambda: MAX_BATCH,
    ) -> None:
        super().__init__(warnings)
        self._store = store
        self._on_settled = on_settled
        self._batch_size = batch_size
        self._pending: list[Verdict] = []
        self._in_flight = 0
        self._busy: list[Verdict] = []
        self.settled = asyncio.Event()
        self.failures = FailureLog()

    def add(self, verdict: Verdict) -> None:
        self._pending.append(verdict)
        self._wake.set()

    @property
    def backlog(self) -> int:
        return len(self._pending) + len(self._busy) + self._in_flight

    async def flush(self, within_s: float) -> None:
        """Wait until all verdicts are settled, at most `within_s`; leases of the rest lapse."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self.backlog:
                    await self.settled.wait()

    async def cancel(self) -> None:
        await super().cancel()
        self.failures.close()

    async def run_once(self) -> float | None:
        self._pending += self._busy
        self._busy = []
        if not self._pending:
            return None
        batch = self._take()
        self._in_flight = len(batch)
        try:
            await self._settle(batch)
        except DatabaseUnavailable:
            # The write may have succeeded without its answer. A repeat gets the same answer.
            self._pending[:0] = batch
            raise
        finally:
            self._in_flight = 0
            self.settled.set()
            self.settled.clear()
        if self._pending:
            return 0
        return BUSY_S if self._busy else None

    def _take(self) -> list[Verdict]:
        count = characters = 0
        for verdict in self._pending[: min(MAX_BATCH, max(MIN_BATCH, self._batch_size()))]:
            characters += len(verdict.result or "") + len(verdict.error or "")
            if count and characters > MAX_CHARACTERS:
                break
            count += 1
        batch, self._pending = self._pending[:count], self._pending[count:]
        return batch

    async def _settle(self, batch: list[Verdict]) -> None:
        try:
            answers = await self._store.settle(batch)
        except DatabaseUnavailable:
            raise
        except Exception as error:
            if len(batch) > 1:
                for verdict in batch:
                    await self._settle([verdict])
                return
            answers = await self._settle_refused(batch[0], error)
        if any(v.may_be_finished for v in batch):
            answers = await self._confirm(batch, answers)
            _log_late_errors(batch, answers)
        busy = {(a.seq, a.attempt) for a in answers if a.answer == "busy"}
        if busy:
            # Another transaction locks these rows: retry them with the next batch, after a pause.
            self._busy += [v for v in batch if (v.claim.seq, v.claim.attempt) in busy]
            batch = [v for v in batch if (v.claim.seq, v.claim.attempt) not in busy]
            answers = [a for a in answers if a.answer != "busy"]
        self.failures.settled(batch, answers)
        self._on_settled(batch, answers)

    async def _confirm(self, batch: list[Verdict], answers: list[WriteResult]) -> list[WriteResult]:
        """Confirm attempts that finished in the handler's own transaction.

        Their later verdict is void. The confirmation releases what the attempt held.
        """
        fenced = {(a.seq, a.attempt) for a in answers if a.answer == "fenced"}
        ended = [
            v._replace(kind="confirm")
            for v in batch
            if v.may_be_finished
            and v.kind != "confirm"
            and (v.claim.seq, v.claim.attempt) in fenced
        ]
        if not ended:
            return answers
        asked = {(v.claim.seq, v.claim.attempt) for v in ended}
        rest = [a for a in answers if (a.seq, a.attempt) not in asked]
        return rest + await self._store.settle(ended)

    async def _settle_refused(self, verdict: Verdict, error: Exception) -> list[WriteResult]:
        refused = _refused(verdict, error)
        if verdict.error is None:
            # The handler succeeded, so the failure is not logged elsewhere.
            message = json.loads(refused.error or "{}")["message"]
            self._warnings.warn("result", f"job {verdict.claim.job_id}: {visible(message)}")
        try:
            return await self._store.settle([refused])
        except DatabaseUnavailable:
            raise
        except Exception as again:
            # Its lease is no longer renewed, so the watchdog will reclaim the job.
            log.error("job %s cannot be ended, its lease will lapse: %s", verdict.claim, again)
            return [WriteResult(verdict.claim.seq, verdict.claim.attempt, "refused")]


def _log_late_errors(batch: list[Verdict], answers: list[WriteResult]) -> None:
    """Log the errors that handlers raised after they finished their jobs themselves."""
    completed = {(a.seq, a.attempt) for a in answers if a.status == "completed"}
    for verdict in batch:
        pair = verdict.claim.seq, verdict.claim.attempt
        if verdict.may_be_finished and pair in completed and verdict.error is not None:
            error = json.loads(verdict.error)
            if error["type"] != ROLLED_BACK:
                text = f"{error['type']}: {error['message']}"
                log.warning("job %s raised after it finished: %s", verdict.claim.job_id, text)


def _refused(verdict: Verdict, error: Exception) -> Verdict:
    message = f"the result was refused: {str(error).splitlines()[0]}"
    return verdict._replace(
        # After a success, the handler must not run again.
        kind=_REFUSED_KINDS.get(verdict.kind, verdict.kind),
        result=None,
        delay_s=None,
        error=json.dumps(
            {"type": "InvalidResult", "message": message.encode("ascii", "replace").decode()}
        ),
    )
