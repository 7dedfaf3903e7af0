"""The arguments of tools that are more than a value."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from laneway.domain.flow import AFTER_FAILURE_DOC, AfterFailure


class FlowJobInput(BaseModel):
    """One job of a flow to submit; the API checks its values."""

    model_config = ConfigDict(extra="forbid")

    job_type: str
    payload: Any = Field(default=None, description="Its arguments, by name")
    name: str | None = Field(default=None, description="For `after` of other jobs of the flow")
    after: list[str] | None = Field(
        default=None,
        description="Names of jobs of the flow, or ids of others, that must complete first",
    )
    after_failure: AfterFailure | None = Field(default=None, description=AFTER_FAILURE_DOC)
    priority: int | None = Field(default=None, description="Higher first")
    delay: float | None = Field(default=None, description="Seconds until it may start")
    run_at: datetime | None = Field(default=None, description="Start then at the earliest")
    unique_key: str | None = Field(
        default=None, description="At most one job that has not ended has it"
    )
    concurrency_key: str | None = Field(default=None, description="At most one running job has it")
    max_retries: int | None = Field(default=None, description="Retries after a failure")
    tags: list[str] | None = None

    def given(self) -> dict[str, Any]:
        """The fields that the assistant gave, as JSON."""
        return self.model_dump(mode="json", exclude_none=True)
