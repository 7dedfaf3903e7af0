"""Laws of publishing: an application does not loosen the policy of another one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from laneway.config.settings import Settings
from laneway.domain.approval import Approval
from laneway.domain.job_type_policy import TypeRecord
from laneway.store import job_types, workers
from tests.store.approvals import record, status
from tests.support.store_client import StoreClient

ALWAYS = Approval()
TWO = Approval(two_person=True)


def start(db: StoreClient, application: str | None, **more: Any) -> None:
    db.run(workers.publish([record("t", application=application, **more)]))


def in_force(db: StoreClient, columns: str = "approval") -> Any:
    return db.one(f"select {columns} from laneway.job_types where name = 't'")


@pytest.mark.parametrize("order", [("strict", "loose"), ("loose", "strict")])
def test_stricter_policy_stays_when_older_worker_starts_later(
    db: StoreClient, order: tuple[str, str]
) -> None:
    says = {
        "strict": {"approval": TWO, "has_analysis": True, "max_retries": 1, "limits": ("openai",)},
        "loose": {"max_retries": 9, "limits": ("ollama",)},
    }
    for application in (*order, *order):
        start(db, application, **says[application])
    assert in_force(db, "approval, two_person, has_analysis, max_retries") == (
        "always", True, True, 1,
    )  # fmt: skip
    assert sorted(in_force(db, "limits")) == ["ollama", "openai"]
    assert status(db, db.submit(created_by="ann")) == "pending"


def test_application_may_loosen_its_own_policy(db: StoreClient) -> None:
    start(db, "shop", approval=ALWAYS)
    start(db, "shop")
    assert in_force(db) == "never"
    assert db.run(workers.conflicts()) == []


def test_job_that_awaits_approval_keeps_waiting_under_a_loosened_policy(db: StoreClient) -> None:
    start(db, "shop", approval=ALWAYS)
    waiting = db.submit(created_by="ann")
    start(db, "shop")
    assert status(db, waiting) == "awaiting_approval"
    assert status(db, db.submit(created_by="ann")) == "approved"


@pytest.mark.parametrize("unit,kept", [("EUR", 5), ("USD", 9)])
def test_lower_threshold_of_the_same_unit_stays(db: StoreClient, unit: str, kept: int) -> None:
    start(db, "shop", approval=Approval(below_cost=5, currency=unit), has_analysis=True)
    start(db, "billing", approval=Approval(below_cost=9, currency="EUR"), has_analysis=True)
    assert in_force(db, "approval_below, approval_unit") == (kept, "EUR")


def test_arguments_are_those_of_the_first_application(db: StoreClient) -> None:
    def publish(application: str, arguments: str) -> None:
        record = TypeRecord(
            name="t", arguments=arguments, lane=None, priority=None, max_retries=3,
            timeout_s=None, isolation="async", stale="heartbeat", application=application,
        )  # fmt: skip
        db.run(workers.publish([record]))

    publish("shop", '{"title": "shop"}')
    publish("billing", '{"title": "billing"}')
    assert in_force(db, "arguments ->> 'title'") == "shop"
    publish("shop", '{"title": "newer"}')
    assert in_force(db, "arguments ->> 'title'") == "newer"


def test_conflict_names_applications_and_fields(db: StoreClient) -> None:
    start(db, "shop", approval=ALWAYS)
    start(db, "billing", max_retries=1)
    (found,) = db.run(workers.conflicts(["t"]))
    assert found == ("t", ["billing", "shop"], ["approval", "max_retries"])
    assert str(found).startswith("job type t is published by billing, shop with different")
    assert db.run(workers.conflicts(["other"])) == []


def test_forgotten_application_counts_no_more(db: StoreClient) -> None:
    start(db, "shop", approval=ALWAYS)
    start(db, "billing")
    assert db.one("select laneway.forget_publisher('t', 'shop')")
    assert not db.one("select laneway.forget_publisher('t', 'shop')")
    start(db, "billing")
    assert in_force(db) == "never"


def test_remote_declaration_loosens_no_application(db: StoreClient) -> None:
    start(db, "shop", approval=ALWAYS, max_retries=1)
    db.run(workers.publish([record("t")], loosens=False))
    assert in_force(db, "approval, max_retries") == ("always", 1)


def test_applications_that_start_together_see_each_other(
    db: StoreClient, other: StoreClient
) -> None:
    db.begin()
    start(db, "shop", approval=ALWAYS)
    later = other.later(lambda: start(other, "billing"))
    db.await_blocked(other)
    db.commit()
    later.result(20)
    assert in_force(db) == "always"


def test_thousands_of_types_are_published_in_one_statement(db: StoreClient) -> None:
    shape = json.dumps({"properties": {f"p{n}": {"title": "x" * 60} for n in range(8)}})
    many = [replace(record(f"t{n}", application="shop"), arguments=shape) for n in range(4000)]
    # The longest name that a worker sends.
    db.do(f"set statement_timeout = {int(Settings().statement_timeout * 1000)}")
    db.run(workers.publish(many))
    assert db.one("select count(*) from laneway.job_types where name ~ '^t[0-9]+$'") == 4000


def test_worker_that_writes_the_table_itself_loosens_nothing(db: StoreClient) -> None:
    start(db, "shop", approval=TWO, has_analysis=True, max_retries=1, limits=("openai",))
    db.do(
        "insert into laneway.job_types (name, limits, max_retries, published_at)"
        " values ('t', '{ollama}', 9, now()) on conflict (name) do update set approval = 'never',"
        " two_person = false, has_analysis = false, max_retries = 9, limits = excluded.limits"
    )
    assert in_force(db, "approval, two_person, has_analysis, max_retries, limits") == (
        "always", True, True, 1, ["ollama", "openai"],
    )  # fmt: skip


def test_lowest_threshold_of_the_own_unit_is_found_among_others(db: StoreClient) -> None:
    for application, unit, most in (("shop", "EUR", 7), ("bank", "USD", 5), ("billing", "EUR", 9)):
        approval = Approval(below_cost=most, currency=unit)
        start(db, application, approval=approval, has_analysis=True)
    assert in_force(db, "approval_below, approval_unit") == (7, "EUR")


def test_unchanged_row_is_not_written_again(db: StoreClient) -> None:
    start(db, "shop", approval=ALWAYS, limits=("b", "a"))
    start(db, "billing", limits=("c",))
    before = in_force(db, "xmin::text, limits")
    assert before[1] == ["a", "b", "c"]
    start(db, "billing", limits=("c",))
    assert in_force(db, "xmin::text, limits") == before


@pytest.mark.parametrize(
    "application, age, binds",
    [
        ("gone", "44 days", True),
        ("gone", "46 days", False),
        # Code without a file, such as a notebook: all of them have this name.
        ("__main__", "23 hours", True),
        ("__main__", "25 hours", False),
    ],
)
def test_only_the_approval_of_an_application_not_seen_for_long_binds(
    db: StoreClient, application: str, age: str, *, binds: bool
) -> None:
    start(db, application, approval=ALWAYS, max_retries=1, limits=("a",))
    start(db, "shop", limits=("b",))
    db.do(
        f"update laneway.type_publishers set seen_at = now() - interval '{age}'"
        f" where application = '{application}'"
    )
    start(db, "shop", limits=("b",))
    assert in_force(db, "approval, max_retries, limits") == (
        ("always", 1, ["a", "b"]) if binds else ("always", 3, ["b"])
    )
    stale = db.run(job_types.publishers(stale_only=True, limit=10))
    assert [one.application for one in stale] == ([] if binds else [application])
    (conflict,) = db.run(workers.conflicts(["t"]))
    assert ("limits" in conflict.fields, "approval" in conflict.fields) == (binds, True)


def test_strict_approval_stays_until_an_operator_forgets_the_application(db: StoreClient) -> None:
    start(db, "gone", approval=TWO)
    db.do("update laneway.type_publishers set seen_at = now() - interval '10 years'")
    start(db, "shop")
    assert in_force(db, "approval, two_person") == ("always", True)
    assert db.run(job_types.forget_publisher("gone", None)) == ["t"]
    start(db, "shop")
    assert in_force(db, "approval, two_person") == ("never", False)


def test_code_without_a_file_makes_no_other_stale_for_longer_than_it_binds(db: StoreClient) -> None:
    start(db, "gone")
    start(db, "__main__")
    db.do(
        "update laneway.type_publishers set seen_at = now() - case application"
        " when 'gone' then interval '46 days' else interval '2 days' end"
    )
    assert db.run(job_types.publishers(stale_only=True, limit=10)) == []


def test_policy_stays_until_another_application_publishes_the_type(db: StoreClient) -> None:
    start(db, "shop", approval=ALWAYS)
    db.do("update laneway.type_publishers set seen_at = now() - interval '1 year'")
    db.do("update laneway.job_types set priority = 5 where name = 't'")
    assert in_force(db) == "always"
    start(db, "shop", approval=ALWAYS)
    start(db, "billing")
    assert in_force(db) == "always"
