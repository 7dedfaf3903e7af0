"""The facts and the state that the `ctx` of async and of plain handlers have in common."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from laneway.domain.approval import analysed_type
from laneway.domain.redaction import redact
from laneway.domain.text import escape_text
from laneway.engine.run.call_check import not_awaited
from laneway.engine.run.checkpoint import Checkpoint
from laneway.engine.run.handler_channel import HandlerChannel, Log, finished_error
from laneway.engine.run.steps import Steps
from laneway.engine.run.waits import Waits
from laneway.errors import InvalidInput

if TYPE_CHECKING:
    from laneway.engine.run.handler_transaction import HandlerTransaction

LARGEST = 1e100


class JobFacts:
    """The job of one attempt, as it was claimed."""

    __slots__ = ("_channel",)

    def __init__(self, channel: HandlerChannel) -> None:
        self._channel = channel

    @property
    def job_id(self) -> UUID:
        """The id of the job."""
        return self._channel.claim.job_id

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._channel.claim.attempt

    @property
    def job_type(self) -> str:
        """The type of the job."""
        return analysed_type(self._channel.assignment.job_type)

    @property
    def max_retries(self) -> int:
        """The retry budget of the job: so many charged failures are followed by a retry."""
        return self._channel.assignment.max_retries

    @property
    def is_last_attempt(self) -> bool:
        """True if the retry budget is spent: a failure of this attempt fails the job."""
        return self._channel.assignment.retries >= self._channel.assignment.max_retries

    @property
    def lane(self) -> str:
        """The lane that this attempt holds a slot of."""
        return self._channel.lane

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the job."""
        return self._channel.assignment.tags

    @property
    def created_by(self) -> str | None:
        """The submitter of the job, if it is known."""
        return self._channel.assignment.created_by

    @property
    def payload(self) -> Any:
        """The JSON input of the job."""
        return self._channel.payload


class HandlerState(JobFacts):
    """The job and the calls so far of one attempt, for both kinds of handlers."""

    __slots__ = (
        "_dropped_call",
        "_log",
        "_names",
        "_opened_steps",
        "_opened_transaction",
        "_opened_waits",
        "_stored",
    )

    def __init__(self, channel: HandlerChannel) -> None:
        super().__init__(channel)
        self._stored: Checkpoint | None = None
        # The name and the right form of the first call without `await`.
        self._dropped_call: tuple[str, str] | None = None
        self._log: Log | None = None
        # Of steps and waits in this attempt.
        self._names: set[str] = set()
        self._opened_steps: Steps | None = None
        self._opened_waits: Waits | None = None
        self._opened_transaction: HandlerTransaction | None = None

    @property
    def checkpoint(self) -> Any:
        """The state that `save` stored last, in this attempt or an earlier one; None at first."""
        return self._saved.state

    @property
    def resources(self) -> SimpleNamespace:
        """The resources that `on_start` loaded in this process."""
        return self._channel.resources

    @property
    def cancelled(self) -> bool:
        """True once the handler should stop: cancelled, late, superseded or shutting down."""
        return self._channel.stop_reason is not None

    @property
    def log(self) -> Log:
        """Writes lines that are kept with the attempt: `ctx.log("page %s", 3)`."""
        if self._log is None:
            self._log = Log(self._channel)
        return self._log

    @property
    def has_finished(self) -> bool:
        """True after `finish`, whether its transaction committed or not."""
        return self._opened_transaction is not None and self._opened_transaction.has_finished

    @property
    def _steps(self) -> Steps:
        if self._opened_steps is None:
            self._opened_steps = Steps(self._channel, self._names)
        return self._opened_steps

    @property
    def _waits(self) -> Waits:
        if self._opened_waits is None:
            self._opened_waits = Waits(self._channel, self._names)
        return self._opened_waits

    def check_suspension(self) -> None:
        """Raise the suspension of this attempt again if its handler swallowed it."""
        if self._opened_waits is not None and self._opened_waits.suspension is not None:
            raise self._opened_waits.suspension

    def note_dropped(self, name: str, form: str) -> None:
        """Remember a call that was never awaited: the next call, or the end, refuses it."""
        if self._dropped_call is None:
            self._dropped_call = name, form

    def check_end(self) -> None:
        """Refuse the return of a handler that swallowed its suspension, or dropped a call."""
        self.check_suspension()
        if self._dropped_call is not None:
            raise InvalidInput(*not_awaited(*self._dropped_call))

    @property
    def _transaction(self) -> HandlerTransaction:
        if self._opened_transaction is None:
            # Imported here: it loads the driver, which a child process may never need.
            from laneway.engine.run.handler_transaction import HandlerTransaction

            self._opened_transaction = HandlerTransaction(self._channel)
        return self._opened_transaction

    @property
    def _saved(self) -> Checkpoint:
        if self._stored is None:
            self._stored = Checkpoint(self._channel.checkpoint, self._channel.limits)
        return self._stored

    def _check_open(self, verb: str) -> None:
        self.check_end()
        if self.has_finished:
            raise finished_error(verb)

    def _report(
        self, done: float | None, total: float | None, message: str | None, stage: str | None
    ) -> None:
        self._channel.report(
            stage=escape_text(redact(stage))[:256] if stage is not None else None,
            done=_number("done", done),
            total=_number("total", total),
            message=escape_text(redact(message))[:1024] if message is not None else None,
        )

    def _report_position(self, name: str, position: int, total: int | None) -> None:
        self._saved.tracked[name] = position
        self._channel.report(
            done=float(position),
            total=None if total is None else float(total),
            checkpoint=self._saved.text(),
        )


def _number(field: str, value: float | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(field, "must be a number")
    if not abs(value) <= LARGEST:
        raise InvalidInput(field, f"must be finite, at most {LARGEST:g}")
    # The percentage divides two of these, so extreme floats would overflow.
    return round(float(value), 9)
