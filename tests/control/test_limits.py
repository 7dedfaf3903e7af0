"""Laws of the operator's verbs on limits."""

from __future__ import annotations

from typing import Any

import pytest

from laneway.control import limits
from laneway.domain.limit import SEEDED_LIMITS
from laneway.errors import InvalidInput, NotFound, Refused
from laneway.store.database import Database
from tests.support.job_factory import JobFactory


def need(factory: JobFactory, job_type: str, *names: str) -> None:
    """As if a worker had published a handler with these limits."""
    factory.conn.execute(
        "insert into laneway.job_types (name, limits) values (%s, %s)", [job_type, list(names)]
    )


def hold(factory: JobFactory, name: str, host: str, running: int) -> None:
    factory.conn.execute(
        "insert into laneway.limit_usage values (%s, gen_random_uuid(), %s, %s)",
        [name, host, running],
    )


async def test_seeded_limits_are_there_and_idle(db: Database) -> None:
    found = await limits.inspect(db)
    assert [(each.limit.name, each.limit.max_concurrent) for each in found] == [
        (limit.name, limit.max_concurrent) for limit in SEEDED_LIMITS
    ]
    assert {(each.running, each.busiest, each.waiting) for each in found} == {(0, 0, 0)}


@pytest.mark.parametrize("scope,busiest", [("cluster", 6), ("host", 4), ("process", 3)])
async def test_limit_shows_total_use_and_highest_use(
    db: Database, factory: JobFactory, scope: str, busiest: int
) -> None:
    await limits.tune(db, "openai", {"scope": scope}, by="me")
    for host, running in (("a", 3), ("a", 1), ("b", 2)):
        hold(factory, "openai", host, running)
    seen = await limits.get(db, "openai")
    assert (seen.running, seen.busiest) == (6, busiest)


async def test_due_jobs_that_need_a_limit_are_counted_up_to_a_bound(
    db: Database, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WAITING_BOUND", 3)
    need(factory, "chat", "openai", "anthropic")
    need(factory, "embed", "openai")
    for job_type in ("chat", "chat", "embed", "greet"):
        factory.submit(job_type)
    factory.submit("chat", delay=60.0)
    waits = {
        each.limit.name: (each.waiting, each.waiting_is_capped) for each in await limits.inspect(db)
    }
    assert waits == {"anthropic": (2, False), "ollama": (0, False), "openai": (3, False)}
    factory.submit("embed")
    seen = await limits.get(db, "openai")
    assert (seen.waiting, seen.waiting_is_capped) == (3, True)


async def test_tuning_changes_named_settings_and_wakes_workers(
    db: Database, factory: JobFactory
) -> None:
    with factory.listening() as heard:
        rated = await limits.tune(db, "openai", {"rate_count": 60, "rate_period_s": 60}, by="ann")
    assert heard == ["wake *"]
    assert not rated.is_new
    assert (rated.limit.max_concurrent, rated.limit.rate_count) == (8, 60)
    assert rated.limit.updated_by == "ann"
    free = await limits.tune(
        db, "openai", {"rate_count": None, "rate_period_s": None, "max_concurrent": None}, by="bob"
    )
    assert (free.limit.max_concurrent, free.limit.rate_count) == (None, None)


async def test_limit_that_is_new_is_created_with_the_defaults(db: Database) -> None:
    made = await limits.tune(db, "gpu", {"scope": "host"}, by="ann")
    assert made.is_new
    assert (made.limit.max_concurrent, made.limit.scope) == (1, "host")
    assert (await limits.get(db, "gpu")).limit == made.limit


@pytest.mark.parametrize(
    "name,change",
    [
        ("openai", {}),
        ("openai", {"max_concurrent": -1}),
        ("openai", {"rate_count": 5}),
        ("openai", {"name": "x"}),
        ("openai", {"slots": 1}),
        ("Open AI", {"max_concurrent": 1}),
        ("'; drop table laneway.limits; --", {"max_concurrent": 1}),
    ],
)
async def test_change_outside_the_rules_is_refused(
    db: Database, name: str, change: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        await limits.tune(db, name, change, by="me")


async def test_actor_must_be_storable_text(db: Database) -> None:
    for by in ("", "a\x00b"):
        with pytest.raises(InvalidInput, match="by"):
            await limits.tune(db, "openai", {"max_concurrent": 1}, by=by)
        with pytest.raises(InvalidInput, match="by"):
            await limits.delete(db, "openai", by=by)


async def test_limit_is_deleted_unless_it_is_needed(db: Database, factory: JobFactory) -> None:
    need(factory, "chat", "openai")
    factory.register(("chat",))
    with pytest.raises(Refused, match="the handlers of chat need it"):
        await limits.delete(db, "openai", by="me")
    hold(factory, "ollama", "a", 1)
    with pytest.raises(Refused, match="held once"):
        await limits.delete(db, "ollama", by="me")
    await limits.delete(db, "anthropic", by="me")
    for verb in (limits.get(db, "anthropic"), limits.delete(db, "anthropic", by="me")):
        with pytest.raises(NotFound, match="anthropic"):
            await verb
