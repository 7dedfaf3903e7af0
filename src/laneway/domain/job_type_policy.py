"""The policy of a job type: what its handler declares about its jobs, and the codec of it.

A policy is written in two forms: as columns of `laneway.job_types`, and as JSON that a remote
worker sends. Times are seconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, Final, Literal, TypeVar

from laneway.domain.approval import Approval
from laneway.domain.change_rules import check_whole
from laneway.domain.duration import check_duration, seconds_of
from laneway.domain.job import MAX_RETRIES_RANGE, PRIORITY_RANGE
from laneway.domain.lane import check_lane_name
from laneway.domain.retention import Retention
from laneway.domain.retry import RetryPolicy
from laneway.domain.text import shown
from laneway.domain.uniqueness import check_unique_by
from laneway.errors import InvalidInput

Isolation = Literal["async", "thread", "process"]
Stale = Literal["heartbeat", "progress"]

MAX_LIMITS: Final = 100
_RETRY: Final = ("base", "cap", "factor", "jitter")
_APPROVAL: Final = ("below_cost", "currency", "below_tokens", "two_person", "expires_s")
_RETENTION: Final = ("completed_s", "cancelled_s", "failed_s", "count")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTypePolicy:
    """The options of a handler that apply to the jobs of its type, checked."""

    lane: str | None = None
    priority: int | None = None
    max_retries: int = 3
    timeout_s: float | None = None
    isolation: Isolation = "async"
    stale: Stale = "heartbeat"
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    limits: tuple[str, ...] = ()
    approval: Approval | None = None
    max_age_s: float | None = None
    retention: Retention = field(default_factory=Retention)
    # At most one job in so many seconds; the arguments that must differ (None: all).
    unique_for_s: float | None = None
    unique_by: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.lane is not None:
            check_lane_name(self.lane, "lane")
        if self.priority is not None:
            check_whole(self.priority, "priority", *PRIORITY_RANGE)
        check_whole(self.max_retries, "max_retries", *MAX_RETRIES_RANGE)
        if self.unique_by is not None:
            object.__setattr__(self, "unique_by", check_unique_by(self.unique_by))
        for name in ("timeout_s", "max_age_s", "unique_for_s"):
            if (duration := getattr(self, name)) is not None:
                object.__setattr__(self, name, check_duration(duration, name))
        if self.isolation not in ("async", "thread", "process"):
            raise InvalidInput("isolation", "must be async, thread or process")
        if self.stale not in ("heartbeat", "progress"):
            raise InvalidInput("stale", "must be heartbeat or progress")
        object.__setattr__(self, "limits", _check_limits(self.limits))
        if not isinstance(self.retention, Retention):
            raise InvalidInput("retention", "must be a Retention")

    @property
    def policy(self) -> dict[str, Any]:
        """The fields of the policy, also of a subclass that has more."""
        return {each.name: getattr(self, each.name) for each in fields(JobTypePolicy)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRecord(JobTypePolicy):
    """A job type with its policy, as its handler declares it; `arguments` is JSON text.

    `application` is the publisher; None: the publisher is not recorded.
    """

    name: str
    arguments: str
    has_analysis: bool = False
    application: str | None = None

    def to_columns(self) -> dict[str, object]:
        """One value per column of laneway.job_types, and the application."""
        approval = self.approval or Approval()
        keep = self.retention
        return {
            "name": self.name,
            "arguments": json.loads(self.arguments),
            "lane": self.lane,
            "priority": self.priority,
            "max_retries": self.max_retries,
            "timeout_s": self.timeout_s,
            "isolation": self.isolation,
            "stale": self.stale,
            **{f"retry_{name}{_UNITS[name]}": getattr(self.retry, name) for name in _RETRY},
            "limits": list(self.limits),
            "has_analysis": self.has_analysis,
            "approval": "never" if self.approval is None else approval.policy,
            "approval_below": None if approval.below is None else str(approval.below),
            "approval_unit": approval.unit,
            "two_person": approval.two_person,
            "approval_expires_s": approval.expires_s,
            "max_age_s": self.max_age_s,
            "keep_completed_s": _age_s(keep.completed),
            "keep_cancelled_s": _age_s(keep.cancelled),
            "keep_failed_s": _age_s(keep.failed),
            "keep_count": keep.count,
            "unique_for_s": self.unique_for_s,
            "unique_by": None if self.unique_by is None else list(self.unique_by),
            "application": self.application,
        }


_UNITS: Final = {"base": "_s", "cap": "_s", "factor": "", "jitter": ""}


def encode_policy(policy: JobTypePolicy) -> dict[str, object]:
    """The policy as JSON; `decode_policy` reverses it, except for the isolation."""
    approval, keep = policy.approval, policy.retention
    return {
        "lane": policy.lane,
        "priority": policy.priority,
        "max_retries": policy.max_retries,
        "timeout_s": policy.timeout_s,
        "stale": policy.stale,
        "retry": {name: getattr(policy.retry, name) for name in _RETRY},
        "limits": list(policy.limits),
        "approval": None if approval is None else _encode_approval(approval),
        "max_age_s": policy.max_age_s,
        "retention": {
            "completed_s": _age_s(keep.completed),
            "cancelled_s": _age_s(keep.cancelled),
            "failed_s": _age_s(keep.failed),
            "count": keep.count,
        },
        "unique_for_s": policy.unique_for_s,
        "unique_by": None if policy.unique_by is None else list(policy.unique_by),
    }


def decode_policy(given: Mapping[str, Any], isolation: Isolation) -> JobTypePolicy:
    """The policy from JSON; InvalidInput names the invalid part."""
    nested: dict[str, Any] = {
        "retry": _parts(given, "retry", _RETRY, lambda parts: RetryPolicy(**parts)),
        "approval": _decode_approval(given),
        "retention": _parts(given, "retention", _RETENTION, _decode_retention),
    }
    plain = {
        name: given[name] for name in POLICY_FIELDS - nested.keys() if given.get(name) is not None
    }
    return JobTypePolicy(isolation=isolation, **plain, **nested)


def _encode_approval(approval: Approval) -> dict[str, object]:
    below = approval.below_cost
    return {
        "below_cost": below if below is None or isinstance(below, int) else float(below),
        "currency": approval.currency,
        "below_tokens": approval.below_tokens,
        "two_person": approval.two_person,
        "expires_s": approval.expires_s,
    }


def _decode_approval(given: Mapping[str, Any]) -> Approval | None:
    policy = given.get("approval")
    if policy is None or policy is False:
        return None
    if policy is True:
        return Approval()

    def make(parts: Mapping[str, Any]) -> Approval:
        known = {_bare(key): value for key, value in parts.items() if value is not None}
        if not isinstance(known.get("two_person", False), bool):
            raise InvalidInput("two_person", "must be true or false")
        return Approval(**known)

    return _parts(given, "approval", _APPROVAL, make)


def _decode_retention(given: Mapping[str, Any]) -> Retention:
    return Retention(**{_bare(key): value for key, value in given.items()})


def _bare(key: str) -> str:
    return key.removesuffix("_s")


def _parts(
    given: Mapping[str, Any],
    name: str,
    keys: tuple[str, ...],
    make: Callable[[Mapping[str, Any]], T],
) -> T:
    """The value of a nested object; InvalidInput names the invalid part."""
    parts = given.get(name)
    if parts is None:
        parts = {}
    if not isinstance(parts, dict):
        raise InvalidInput(name, "must be a JSON object")
    for key in parts:
        if key not in keys:
            raise InvalidInput(f"{name}.{key[:60]}", f"is not one of {', '.join(keys)}")
    try:
        return make(parts)
    except InvalidInput as error:
        inner = error.field.removeprefix(f"{name}.")
        key = inner if inner in keys else f"{inner}_s"
        raise InvalidInput(f"{name}.{key}", error.rule) from None


def _check_limits(names: object) -> tuple[str, ...]:
    rule = f"must be a list of at most {MAX_LIMITS} names"
    if isinstance(names, str):
        raise InvalidInput("limits", f"{rule}, not {shown(names)}: write [{shown(names)}]")
    if not isinstance(names, (list, tuple)):
        raise InvalidInput("limits", f"{rule}, not {shown(names)}")
    if len(names) > MAX_LIMITS:
        raise InvalidInput("limits", rule)
    known = {check_lane_name(name, f"limits[{i}]") for i, name in enumerate(names)}
    if len(known) < len(names):
        raise InvalidInput("limits", "must not name a limit twice")
    return tuple(sorted(known))


def _age_s(age: float | timedelta | None) -> float | None:
    return None if age is None else seconds_of(age)


# The fields of the JSON form.
POLICY_FIELDS: Final = frozenset(encode_policy(JobTypePolicy()))
