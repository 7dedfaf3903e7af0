"""The facts about its job that a handler reads from its context."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from laneway.domain.approval import analysed_type
from laneway.engine.run.handler_channel import HandlerChannel


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
