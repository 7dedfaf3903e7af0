"""Rules of analyses and of approval policies."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from laneway.domain.approval import (
    Analysis,
    Approval,
    Cost,
    as_approval,
    cost_of,
    status_after_analysis,
)
from laneway.domain.retention import Retention
from laneway.domain.states import Status
from laneway.engine.registry import Registry, make_analysis, make_handler
from laneway.errors import ConfigError, InvalidInput

ASKED, APPROVED = Status.AWAITING_APPROVAL, Status.APPROVED


def test_analysis_is_stored_with_plan_cost_and_warnings() -> None:
    analysis = Analysis(
        plan=["drop", "build"], cost=Decimal("12.5"), currency="EUR", warnings=["slow"]
    )
    assert analysis.to_dict() == {
        "plan": ["drop", "build"],
        "cost": {"amount": 12.5, "currency": "EUR"},
        "warnings": ["slow"],
    }
    assert Analysis(tokens=9).to_dict()["cost"] == {"tokens": 9}
    assert Analysis().to_dict() == {"plan": None, "cost": None, "warnings": []}


@pytest.mark.parametrize(
    "given,field",
    [
        ({"cost": 1}, "currency"),
        ({"cost": 1, "currency": "eur"}, "currency"),
        ({"cost": 1, "currency": "EUR", "tokens": 1}, "tokens"),
        ({"currency": "EUR"}, "currency"),
        ({"cost": -1, "currency": "EUR"}, "cost"),
        ({"cost": float("nan"), "currency": "EUR"}, "cost"),
        ({"cost": Decimal("NaN"), "currency": "EUR"}, "cost"),
        ({"cost": Decimal("Infinity"), "currency": "EUR"}, "cost"),
        ({"cost": True, "currency": "EUR"}, "cost"),
        ({"cost": "1", "currency": "EUR"}, "cost"),
        ({"tokens": -1}, "tokens"),
        ({"tokens": 2e15}, "tokens"),
        ({"warnings": "one"}, "warnings"),
        ({"warnings": ["x"] * 101}, "warnings"),
        ({"warnings": ["ok", ""]}, "warnings[1]"),
        ({"warnings": [7]}, "warnings[0]"),
    ],
)
def test_analysis_that_breaks_a_rule_names_the_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Analysis(**given).to_dict()
    assert refused.value.field == field


@pytest.mark.parametrize(
    "given,field",
    [
        ({"below_cost": 1}, "currency"),
        ({"currency": "EUR"}, "currency"),
        ({"below_cost": 1, "currency": "EUR", "below_tokens": 1}, "below_tokens"),
        ({"below_cost": -1, "currency": "EUR"}, "below_cost"),
        ({"below_tokens": float("inf")}, "below_tokens"),
        ({"expires": 0}, "expires"),
        ({"expires": timedelta(days=367)}, "expires"),
    ],
)
def test_policy_that_breaks_a_rule_names_the_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Approval(**given)
    assert refused.value.field == field


def test_handler_names_its_policy_with_a_keyword() -> None:
    assert as_approval(True) == as_approval("always") == Approval()
    assert as_approval(False) is as_approval(None) is as_approval("never") is None
    mine = Approval(two_person=True, expires=timedelta(hours=1))
    assert as_approval(mine) is mine
    assert mine.expires_s == 3600
    odd_ones: list[object] = ["sometimes", 1.5, 2, []]
    for odd in odd_ones:
        with pytest.raises(InvalidInput, match="approval"):
            as_approval(odd)


EUR5 = Approval(below_cost=5, currency="EUR")


@pytest.mark.parametrize(
    "approval,analysis,status",
    [
        (None, Analysis(cost=99, currency="EUR"), APPROVED),
        (Approval(), Analysis(cost=0, currency="EUR"), ASKED),
        (EUR5, Analysis(cost=5, currency="EUR"), APPROVED),
        (EUR5, Analysis(cost=Decimal("5.01"), currency="EUR"), ASKED),
        (EUR5, Analysis(cost=1, currency="USD"), ASKED),
        (EUR5, Analysis(tokens=1), ASKED),
        (EUR5, Analysis(), ASKED),
        (Approval(below_tokens=100), Analysis(tokens=100), APPROVED),
        (Approval(below_tokens=100), Analysis(tokens=101), ASKED),
        (Approval(below_tokens=100), Analysis(cost=1, currency="EUR"), ASKED),
        (Approval(below_cost=0, currency="EUR"), Analysis(cost=0, currency="EUR"), APPROVED),
        (Approval(below_cost=0.1, currency="EUR"),
         Analysis(cost=Decimal("0.1"), currency="EUR"), APPROVED),
    ],
)  # fmt: skip
def test_policy_decides_by_cost(
    approval: Approval | None, analysis: Analysis, status: Status
) -> None:
    assert status_after_analysis(approval, analysis.to_dict()) is status


@pytest.mark.parametrize(
    "stored", [None, "text", [], {}, {"cost": None}, {"cost": 5}, {"cost": {"amount": "5"}}]
)
def test_invalid_stored_cost_is_none(stored: object) -> None:
    assert cost_of(stored) is None
    assert status_after_analysis(EUR5, stored) is ASKED


def test_cost_is_read_back_and_displayed() -> None:
    assert cost_of(Analysis(cost=1234.5, currency="USD").to_dict()) == Cost(
        Decimal("1234.5"), "USD"
    )
    assert str(Cost(Decimal("1234.5"), "USD")) == "1,234.5 USD"
    assert str(Cost(Decimal("1000"), "tokens")) == "1,000 tokens"


# -- handlers with an analysis -------------------------------------------------------------------


def rebuild(ctx: object, index: str, shards: int = 4) -> None: ...


def test_analysis_gets_the_arguments_it_names_with_defaults() -> None:
    handler = make_handler("rebuild", rebuild)
    seen: list[Any] = []

    def plan(shards: int) -> Analysis:
        seen.append(shards)
        return Analysis()

    made = make_analysis(handler, plan)
    assert (made.job_type, made.isolation, made.is_analysis) == ("\x01rebuild", "thread", True)
    assert made.fn(None, index="a")["warnings"] == []

    def takes_all(ctx: object, **all_of_them: object) -> Analysis:
        seen.append(all_of_them)
        return Analysis()

    made = make_analysis(handler, takes_all)
    made.fn("context", index="a", shards=2)
    assert seen == [4, {"index": "a", "shards": 2}]


def test_analysis_with_impossible_signature_is_refused() -> None:
    handler = make_handler("rebuild", rebuild)
    with pytest.raises(ConfigError, match="has no argument colour"):
        make_analysis(handler, lambda colour: Analysis())
    with pytest.raises(ConfigError, match="analysis has no analysis"):
        make_analysis(make_analysis(handler, lambda: Analysis()), lambda: Analysis())
    registry = Registry()
    registry.add(handler)
    registry.add_analysis(handler, lambda: Analysis())
    with pytest.raises(ConfigError, match="already has an analysis"):
        registry.add_analysis(handler, lambda: Analysis())


def test_invalid_analysis_is_reported() -> None:
    made = make_analysis(make_handler("rebuild", rebuild), lambda: {"cost": 1})
    with pytest.raises(InvalidInput, match="must be an Analysis, got dict"):
        made.fn(None, index="a")


def test_registry_lists_prerequisites_of_its_jobs() -> None:
    registry = Registry()
    registry.add(make_handler("plain", rebuild))
    registry.add(make_handler("gated", rebuild, approval=True))
    registry.add(analysed := make_handler("analysed", rebuild))
    registry.add(both := make_handler("both", rebuild, approval=True))
    for handler in (analysed, both):
        registry.add_analysis(handler, lambda: Analysis())
    needs = {name: registry.needs(name) for name in (*registry.job_types, "unknown")}
    assert needs == {
        "plain": None, "gated": "approval", "analysed": "analysis", "both": "both", "unknown": None,
    }  # fmt: skip
    records = {one.name: one.to_columns() for one in registry.records()}
    assert [records[name]["has_analysis"] for name in sorted(records)] == [
        True, True, False, False,
    ]  # fmt: skip
    assert [records[name]["approval"] for name in sorted(records)] == [
        "never", "always", "always", "never",
    ]  # fmt: skip


def test_wrong_policy_names_its_handler() -> None:
    with pytest.raises(ConfigError, match="handler 'rebuild': approval: must be True"):
        make_handler("rebuild", rebuild, approval="perhaps")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["x", 10**400, True, [], -1])
def test_invalid_duration_is_refused_with_its_field(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="expires: must be"):
        Approval(expires=wrong)
    for field in ("completed", "cancelled", "failed"):
        with pytest.raises(InvalidInput, match=rf"^retention\.{field}: must be"):
            Retention(**{field: wrong})
    with pytest.raises(ConfigError, match="max_age: must be"):
        make_handler("rebuild", rebuild, max_age=wrong)


def test_missing_currency_is_named_as_missing() -> None:
    with pytest.raises(InvalidInput, match="currency: is missing: an amount needs its currency"):
        Approval(below_cost=5)
    with pytest.raises(InvalidInput, match="like USD, not 'usd'"):
        Approval(below_cost=5, currency="usd")
