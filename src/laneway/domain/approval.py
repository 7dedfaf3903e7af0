"""Analyses with their cost, and the policy that decides which jobs need an approval."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, NamedTuple

from laneway.domain.annotations import Doc
from laneway.domain.duration import DAY_S, check_duration, seconds_of
from laneway.domain.states import Status
from laneway.domain.text import check_text, shown
from laneway.errors import InvalidInput

TOKENS: Final = "tokens"
MAX_WARNINGS: Final = 100
LARGEST_AMOUNT: Final = 1_000_000_000_000_000
NEEDS_SUBMITTER: Final = "must be given, because another person approves jobs of this type"
# Begins the queue of a type's analyses: no job type begins with a control character.
_ANALYSIS_PREFIX: Final = "\x01"

Policy = Literal["never", "always", "below"]
Number = int | float | Decimal


def analysis_of(job_type: str) -> str:
    """The name under which analyses of a job type wait and are claimed."""
    return _ANALYSIS_PREFIX + job_type


def is_analysis(name: str) -> bool:
    return name.startswith(_ANALYSIS_PREFIX)


def analysed_type(name: str) -> str:
    """The job type, given its name or that of its analyses."""
    return name.removeprefix(_ANALYSIS_PREFIX)


def display_name(name: str) -> str:
    """The name of a job type, or of its analyses, for people."""
    return f"analysis of {analysed_type(name)}" if is_analysis(name) else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Plan and cost estimate of a job: an amount with its currency, or tokens."""

    plan: Any = None
    cost: Number | None = None
    currency: str | None = None
    tokens: int | None = None
    warnings: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """The analysis as stored; InvalidInput names the field that is wrong."""
        if isinstance(self.warnings, str) or len(self.warnings) > MAX_WARNINGS:
            raise InvalidInput("warnings", f"must be a list of at most {MAX_WARNINGS} texts")
        for i, text in enumerate(self.warnings):
            check_text(text, f"warnings[{i}]", max_bytes=2000)
        return {"plan": self.plan, "cost": self._cost(), "warnings": list(self.warnings)}

    def _cost(self) -> dict[str, Any] | None:
        if self.cost is not None and self.tokens is not None:
            raise InvalidInput("tokens", "give cost or tokens, not both")
        if self.cost is not None:
            amount = _amount("cost", self.cost)
            return {"amount": amount, "currency": check_currency(self.currency, "currency")}
        if self.currency is not None:
            raise InvalidInput("currency", "needs a cost")
        if self.tokens is not None:
            return {"tokens": _amount("tokens", self.tokens)}
        return None


class Cost(NamedTuple):
    """An amount in a unit: a currency, or tokens."""

    amount: Decimal
    unit: str

    def __str__(self) -> str:
        return f"{self.amount:,f} {self.unit}"


def cost_of(analysis: object) -> Cost | None:
    """The cost in a stored analysis; None if it has none."""
    cost = analysis.get("cost") if isinstance(analysis, Mapping) else None
    if not isinstance(cost, Mapping):
        return None
    amount, unit = cost.get("amount"), cost.get("currency")
    if amount is None:
        amount, unit = cost.get("tokens"), TOKENS
    is_number = isinstance(amount, (int, float)) and not isinstance(amount, bool)
    return Cost(Decimal(str(amount)), str(unit)) if is_number else None


@dataclass(frozen=True, slots=True)
class Decision:
    """An approval or rejection of a job."""

    decision: str
    decided_at: datetime
    decided_by: str | None
    comment: str | None
    seal: Annotated[str | None, Doc("The seal of the version that was decided on")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The approval that jobs of a type need before they run.

    Approval() asks for every job. With `below_cost` (and `currency`) or `below_tokens`, a job runs
    without approval if its analysis estimates at most that. With `two_person`, the submitter cannot
    approve. After `expires` (seconds or a timedelta) without a decision the job is cancelled.
    """

    below_cost: Number | None = None
    currency: str | None = None
    below_tokens: int | None = None
    two_person: bool = False
    expires: float | timedelta = DAY_S

    def __post_init__(self) -> None:
        if self.below_cost is not None and self.below_tokens is not None:
            raise InvalidInput("below_tokens", "give below_cost or below_tokens, not both")
        if self.below_cost is not None:
            _amount("below_cost", self.below_cost)
            check_currency(self.currency, "currency")
        elif self.currency is not None:
            raise InvalidInput("currency", "needs below_cost")
        if self.below_tokens is not None:
            _amount("below_tokens", self.below_tokens)
        check_duration(self.expires, "expires")

    @property
    def policy(self) -> Policy:
        """Whether every job needs a decision, or only one that costs more than `below`."""
        return "always" if self.below is None else "below"

    @property
    def below(self) -> Number | None:
        """The highest cost that needs no decision."""
        return self.below_cost if self.below_cost is not None else self.below_tokens

    @property
    def unit(self) -> str | None:
        """The unit of `below`: a currency, or tokens."""
        return self.currency or (TOKENS if self.below_tokens is not None else None)

    @property
    def expires_s(self) -> float:
        """`expires` in seconds."""
        return seconds_of(self.expires)

    def lets_through(self, cost: Cost | None) -> bool:
        """Whether a job of this cost needs no decision; a job without a cost needs one."""
        if self.below is None or cost is None:
            return False
        return cost.unit == self.unit and cost.amount <= Decimal(str(self.below))


def status_after_analysis(approval: Approval | None, analysis: object) -> Status:
    """The status of an analysed job by the policy of its type.

    laneway.apply_approval_policy is the same rule.
    """
    if approval is None or approval.lets_through(cost_of(analysis)):
        return Status.APPROVED
    return Status.AWAITING_APPROVAL


def as_approval(given: object) -> Approval | None:
    """The policy for `approval=`: True, "always", an Approval; or False, None, "never"."""
    if isinstance(given, Approval):
        return given
    if given is True or given == "always":
        return Approval()
    if given is None or given is False or given == "never":
        return None
    raise InvalidInput("approval", 'must be True, False, "always", "never" or an Approval')


def excluded_approver(created_by: str | None) -> str:
    """Text about who cannot approve a job under the two-person rule."""
    if created_by is None:
        return "anyone, because its submitter is unknown"
    name = created_by.removeprefix("schedule:")
    return created_by if name == created_by else f"the author of the schedule {name}"


def check_currency(text: object, field: str) -> str:
    if text is None:
        raise InvalidInput(field, 'is missing: an amount needs its currency, such as "USD"')
    if not isinstance(text, str) or not re.fullmatch("[A-Z]{3}", text):
        raise InvalidInput(field, f"must be three capital letters, like USD, not {shown(text)}")
    return text


def _amount(field: str, value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise InvalidInput(field, "must be a number")
    is_finite = value.is_finite() if isinstance(value, Decimal) else value == value
    if not is_finite or not 0 <= value <= LARGEST_AMOUNT:
        raise InvalidInput(field, "must be from 0 to 1e15")
    return value if isinstance(value, int) else float(value)
