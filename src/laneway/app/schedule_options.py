"""The options of `@lw.schedule` and `@lw.check`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict


class ScheduleOptions(TypedDict, total=False):
    """The options of `@lw.schedule`; `cron` is required."""

    cron: str
    timezone: str
    payload: dict[str, Any]
    missed: Literal["skip", "coalesce", "catch_up"]
    catch_up: int
    check: str | None
    priority: int | None
    max_retries: int | None
    concurrency_key: str | None
    workspace: str
    tags: Sequence[str]
    enabled: bool


class CheckOptions(TypedDict, total=False):
    """The options of `@lw.check`: the seconds that an answer may take."""

    timeout: float
