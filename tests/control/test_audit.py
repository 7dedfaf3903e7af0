"""Every accepted change commits with exactly one audit entry; a refusal leaves none."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pkgutil
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

import laneway.control
from laneway.control import (
    access,
    approval,
    audit,
    bulk,
    events,
    freeze,
    history,
    job_types,
    jobs,
    lanes,
    limits,
    schedules,
    sessions,
    webhooks,
    workers,
)
from laneway.control.bulk import BulkRequest, BulkVerb
from laneway.domain.actor import Actor
from laneway.domain.approval import Approval
from laneway.domain.audit import AuditEntry, AuditFilter
from laneway.domain.filter import JobFilter
from laneway.domain.freeze import Freeze, LaneWatch
from laneway.domain.redaction import HIDDEN_FIELD
from laneway.errors import InvalidInput, NotFound, Refused
from laneway.store.database import Database
from tests.support.job_factory import JobFactory

ANN = Actor("ann", door="http", principal_id=uuid4(), request_id="req-1", address="192.0.2.7")
NIGHTLY = {"job_type": "greet", "cron": "0 3 * * *", "workspace": "north"}
HOOKED: dict[str, object] = {"url": "https://crm.example/laneway"}
# A path may contain a secret.
AUDITED_HOOK: dict[str, object] = {"url": "https://crm.example/…"}
GONE = UUID(int=7)

Call = Callable[..., Awaitable[object]]


async def nothing(db: Database, factory: JobFactory) -> None:
    return None


@dataclass(frozen=True)
class Case:
    """A verb with its arguments, its expected audit entry, and a call that it refuses."""

    verb: Call
    act: tuple[str, str]
    call: Callable[[Any], tuple[tuple[Any, ...], dict[str, Any]]]
    refused: Callable[[], tuple[tuple[Any, ...], dict[str, Any]]] | None
    prepare: Callable[[Database, JobFactory], Awaitable[Any]] = nothing
    before: dict[str, object] | None = None
    after: dict[str, object] | None = None
    workspace: str | None = None


def given(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


async def waiting(db: Database, factory: JobFactory) -> UUID:
    return factory.submit(workspace="north")


async def delayed(db: Database, factory: JobFactory) -> UUID:
    return factory.submit(workspace="north", run_at=datetime(2099, 1, 1, tzinfo=UTC))


async def failed(db: Database, factory: JobFactory) -> UUID:
    return factory.failed(workspace="north")


async def gated(db: Database, factory: JobFactory) -> UUID:
    factory.publish("gated", approval=Approval())
    return factory.submit("gated", workspace="north")


async def published_twice(db: Database, factory: JobFactory) -> None:
    for application in ("old_shop", "shop"):
        factory.publish("refund", application=application)


async def scheduled(db: Database, factory: JobFactory) -> None:
    await schedules.put(db, "nightly", NIGHTLY, by="setup")


async def disabled(db: Database, factory: JobFactory) -> None:
    await schedules.put(db, "nightly", {**NIGHTLY, "enabled": False}, by="setup")


async def drained(db: Database, factory: JobFactory) -> None:
    await lanes.drain(db, "system", by="setup")


async def worker(db: Database, factory: JobFactory) -> UUID:
    return factory.register()


async def drained_worker(db: Database, factory: JobFactory) -> UUID:
    return (await workers.drain(db, factory.register(), by="setup")).id


async def shut(db: Database, factory: JobFactory) -> None:
    await lanes.pause(db, by="setup")


async def frozen(db: Database, factory: JobFactory) -> None:
    await freeze.freeze(db, ["system"], by="setup", deadline=0)


async def frozen_by_ann(db: Database, factory: JobFactory) -> None:
    await freeze.freeze(db, ["system"], by="ann", deadline=0)


async def hooked(db: Database, factory: JobFactory) -> None:
    await webhooks.create(db, "crm", HOOKED, by="setup")


async def bert(db: Database, factory: JobFactory) -> str:
    return (await access.create_principal(db, "bert", "person", by="setup")).name


async def disabled_bert(db: Database, factory: JobFactory) -> str:
    await bert(db, factory)
    return (await access.disable_principal(db, "bert", by="setup")).name


async def role(db: Database, factory: JobFactory) -> str:
    return (await access.create_role(db, "clerk", ["jobs:read"], by="setup")).name


async def granted(db: Database, factory: JobFactory) -> UUID:
    await bert(db, factory)
    made = await access.grant_role(db, "bert", "viewer", "workspace", "north", by="setup")
    return made.id


async def token(db: Database, factory: JobFactory) -> UUID:
    await bert(db, factory)
    return (await access.create_token(db, "bert", "ci", by="setup")).token.id


async def run_bulk(db: Database, order: BulkRequest, **more: Any) -> None:
    async for _ in bulk.run(db, order, **more):
        pass


HOLD = freeze.Hold(["system"], ["system"])
BUSY = Freeze((LaneWatch("system", 1, ()),), 0.0)
CASES: dict[str, Case] = {
    "jobs.cancel": Case(
        jobs.cancel, ("job.cancelled", "job"), lambda job: given(job, reason="why"),
        lambda: given(GONE), waiting, {"status": "approved"},
        {"status": "cancelled", "reason": "why"}, "north",
    ),
    "jobs.reprioritize": Case(
        jobs.reprioritize, ("job.reprioritized", "job"), lambda job: given(job, 7),
        lambda: given(GONE, 7), waiting, {"priority": 0}, {"priority": 7}, "north",
    ),
    "jobs.retry": Case(
        jobs.retry, ("job.retried", "job"), lambda job: given(job), lambda: given(GONE),
        failed, {"status": "failed"}, {"status": "approved"}, "north",
    ),
    "jobs.run_now": Case(
        jobs.run_now, ("job.made_due", "job"), lambda job: given(job), lambda: given(GONE),
        delayed, {"run_at": "2099-01-01T00:00:00Z"}, {}, "north",
    ),
    "jobs.delete": Case(
        jobs.delete, ("job.deleted", "job"), lambda job: given(job), lambda: given(GONE),
        failed, {"status": "failed", "job_type": "greet"}, None, "north",
    ),
    "events.send": Case(
        events.send, ("event.sent", "event"),
        lambda _: given("paid", key="7", payload={"card": "4111"}, workspace="north"),
        lambda: given(""), after={"key": "7", "delivered": 0}, workspace="north",
    ),
    "approval.approve": Case(
        approval.approve, ("job.approved", "job"), lambda job: given(job, comment="fine"),
        lambda: given(GONE), gated, {"status": "awaiting_approval"},
        {"status": "approved", "comment": "fine"}, "north",
    ),
    "approval.reject": Case(
        approval.reject, ("job.rejected", "job"), lambda job: given(job, reason="no"),
        lambda: given(GONE, reason="no"), gated, {"status": "awaiting_approval"},
        {"status": "cancelled", "comment": "no"}, "north",
    ),
    "bulk.run": Case(
        run_bulk, ("job.bulk_cancelled", "job"),
        lambda job: given(BulkRequest(verb=BulkVerb.CANCEL, wanted=JobFilter(workspace="north"))),
        lambda: given(BulkRequest(verb=BulkVerb.CANCEL, wanted=JobFilter())), waiting, None,
        {"filter": {"workspace": "north"}, "matched": 1, "upto": 1}, "north",
    ),
    "lanes.create": Case(
        lanes.create, ("lane.created", "lane"), lambda _: given({"name": "video"}),
        lambda: given({"name": "system"}), after={"name": "video", "max_slots": 1},
    ),
    "lanes.tune": Case(
        lanes.tune, ("lane.tuned", "lane"), lambda _: given("system", {"max_slots": 3}),
        lambda: given("nowhere", {"max_slots": 3}),
        before={"max_slots": 1}, after={"max_slots": 3},
    ),
    "lanes.drain": Case(
        lanes.drain, ("lane.drained", "lane"), lambda _: given("system"),
        lambda: given("nowhere"), before={"enabled": True}, after={"enabled": False},
    ),
    "lanes.resume": Case(
        lanes.resume, ("lane.resumed", "lane"), lambda _: given("system"),
        lambda: given("nowhere"), drained, {"enabled": False}, {"enabled": True},
    ),
    "workers.drain": Case(
        workers.drain, ("worker.drained", "worker"), lambda id_: given(id_), lambda: given(GONE),
        worker, {"worker": "host:1", "drain_requested_by": None},
        {"worker": "host:1", "drain_requested_by": "ann"},
    ),
    "workers.resume": Case(
        workers.resume, ("worker.resumed", "worker"), lambda id_: given(id_), lambda: given(GONE),
        drained_worker, {"worker": "host:1", "drain_requested_by": "setup"},
        {"worker": "host:1", "drain_requested_by": None, "drain_requested_at": None},
    ),
    "lanes.move_type": Case(
        lanes.move_type, ("lane.type_moved", "lane"), lambda _: given("polarity", "system"),
        lambda: given("polarity", "nowhere"),
        before={"job_type": "polarity", "lane": "interactive"},
        after={"job_type": "polarity", "lane": "system"},
    ),
    "lanes.pause": Case(
        lanes.pause, ("gate.shut", "gate"), lambda _: given(), None,
        before={"paused": False}, after={"paused": True, "paused_by": "ann"},
    ),
    "lanes.resume_all": Case(
        lanes.resume_all, ("gate.opened", "gate"), lambda _: given(), None, shut,
        {"paused": True, "paused_by": "setup"}, {"paused": False},
    ),
    "limits.tune": Case(
        limits.tune, ("limit.tuned", "limit"), lambda _: given("openai", {"max_concurrent": 2}),
        lambda: given("openai", {"scope": "moon"}),
        before={"max_concurrent": 8}, after={"max_concurrent": 2},
    ),
    "limits.delete": Case(
        limits.delete, ("limit.deleted", "limit"), lambda _: given("ollama"),
        lambda: given("nothing"), before={"name": "ollama", "max_concurrent": 1},
    ),
    "job_types.forget_publisher": Case(
        job_types.forget_publisher, ("application.forgotten", "application"),
        lambda _: given("old_shop", job_type="refund"), lambda: given("missing"), published_twice,
        before={"job_types": ["refund"], "count": 1},
    ),
    "schedules.put": Case(
        schedules.put, ("schedule.created", "schedule"), lambda _: given("nightly", NIGHTLY),
        lambda: given("nightly", {"cron": "x"}), after=dict(NIGHTLY), workspace="north",
    ),
    "schedules.enable": Case(
        schedules.enable, ("schedule.enabled", "schedule"), lambda _: given("nightly"),
        lambda: given("nothing"), disabled, {"enabled": False}, {"enabled": True}, "north",
    ),
    "schedules.disable": Case(
        schedules.disable, ("schedule.disabled", "schedule"), lambda _: given("nightly"),
        lambda: given("nothing"), scheduled, {"enabled": True}, {"enabled": False}, "north",
    ),
    "schedules.delete": Case(
        schedules.delete, ("schedule.deleted", "schedule"), lambda _: given("nightly"),
        lambda: given("nothing"), scheduled, {"cron": "0 3 * * *"}, None, "north",
    ),
    "schedules.run_now": Case(
        schedules.run_now, ("schedule.ran", "schedule"), lambda _: given("nightly"),
        lambda: given("nothing"), scheduled, None, {"answer": "submitted"}, "north",
    ),
    "history.rollback": Case(
        history.rollback, ("lane.rolled_back", "lane"), lambda _: given("lane", "system"),
        lambda: given("lane", "nowhere"), drained, {"enabled": False}, {"enabled": True},
    ),
    "freeze.freeze": Case(
        freeze.freeze, ("lane.frozen", "lane"), lambda _: given(["system"], deadline=0),
        lambda: given(["nowhere"]), before={"enabled": ["system"]}, after={"frozen": ["system"]},
    ),
    "freeze.begin": Case(
        freeze.begin, ("lane.frozen", "lane"), lambda _: given(["system"]),
        lambda: given(["nowhere"]), before={"enabled": ["system"]}, after={"frozen": ["system"]},
    ),
    "freeze.undo": Case(
        freeze.undo, ("lane.thawed", "lane"), lambda _: given(HOLD), None, frozen_by_ann,
        {"frozen": ["system"]}, {"enabled": ["system"]},
    ),
    "freeze.end": Case(
        freeze.end, ("lane.thawed", "lane"), lambda _: given(HOLD, BUSY, or_thaw=True), None,
        frozen_by_ann, {"frozen": ["system"]}, {"enabled": ["system"]},
    ),
    "freeze.thaw": Case(
        freeze.thaw, ("lane.thawed", "lane"), lambda _: given(["system"]),
        lambda: given(["default"]), frozen, {"frozen": ["system"]}, {"enabled": ["system"]},
    ),
    "access.create_principal": Case(
        access.create_principal, ("principal.created", "access"), lambda _: given("bert", "person"),
        lambda: given("bert", "robot"), after={"name": "bert", "kind": "person"},
    ),
    "access.disable_principal": Case(
        access.disable_principal, ("principal.disabled", "access"), lambda name: given(name),
        lambda: given("missing"), bert, {"name": "bert"}, {"name": "bert"},
    ),
    "access.enable_principal": Case(
        access.enable_principal, ("principal.enabled", "access"), lambda name: given(name),
        lambda: given("missing"), disabled_bert, {"name": "bert"}, {"name": "bert"},
    ),
    "access.create_role": Case(
        access.create_role, ("role.created", "access"), lambda _: given("clerk", ["jobs:read"]),
        lambda: given("viewer", ["jobs:read"]), after={"permissions": ["jobs:read"]},
    ),
    "access.change_role": Case(
        access.change_role, ("role.changed", "access"), lambda name: given(name, ["jobs:submit"]),
        lambda: given("viewer", ["jobs:read"]), role,
        {"permissions": ["jobs:read"]}, {"permissions": ["jobs:submit"]},
    ),
    "access.delete_role": Case(
        access.delete_role, ("role.deleted", "access"), lambda name: given(name),
        lambda: given("viewer"), role, {"permissions": ["jobs:read"]},
    ),
    "access.grant_role": Case(
        access.grant_role, ("role.granted", "access"),
        lambda name: given(name, "viewer", "workspace", "north"),
        lambda: given("missing", "viewer", "all"), bert, None,
        {"role": "viewer", "scope": "workspace"}, "north",
    ),
    "access.revoke_grant": Case(
        access.revoke_grant, ("role.revoked", "access"), lambda grant: given(grant),
        lambda: given(GONE), granted, {"role": "viewer"}, None, "north",
    ),
    "access.create_token": Case(
        access.create_token, ("token.created", "access"), lambda name: given(name, "ci"),
        lambda: given("missing", "ci"), bert, None, {"name": "ci"},
    ),
    "access.revoke_token": Case(
        access.revoke_token, ("token.revoked", "access"), lambda made: given(made),
        lambda: given(GONE), token, {"name": "ci", "revoked_by": None}, {"revoked_by": "ann"},
    ),
    "webhooks.create": Case(
        webhooks.create, ("webhook.created", "webhook"), lambda _: given("crm", HOOKED),
        lambda: given("crm", {"url": "ftp://crm.example"}), after=AUDITED_HOOK,
    ),
    "webhooks.change": Case(
        webhooks.change, ("webhook.changed", "webhook"),
        lambda _: given("crm", {"enabled": False}), lambda: given("missing", {"enabled": False}),
        hooked, {"enabled": True}, {"enabled": False},
    ),
    "webhooks.rotate": Case(
        webhooks.rotate, ("webhook.secret_rotated", "webhook"), lambda _: given("crm"),
        lambda: given("missing"), hooked, AUDITED_HOOK, AUDITED_HOOK,
    ),
    "webhooks.delete": Case(
        webhooks.delete, ("webhook.deleted", "webhook"), lambda _: given("crm"),
        lambda: given("missing"), hooked, AUDITED_HOOK,
    ),
    "webhooks.test": Case(
        webhooks.test, ("webhook.tested", "webhook"), lambda _: given("crm"),
        # The id of the delivery is new each time.
        lambda: given("missing"), hooked, after={},
    ),
    "sessions.create_login_link": Case(
        sessions.create_login_link, ("link.created", "access"), lambda name: given(name),
        lambda: given("missing"), bert, after={"acting_for": "bert"},
    ),
    "sessions.bootstrap": Case(
        sessions.bootstrap, ("principal.created", "access"), lambda _: given(), None,
        after={"name": "admin", "role": "platform_admin"},
    ),
}  # fmt: skip
# These change nothing.
READERS = {"bulk.preview"}
# These store audit entries; this file tests them.
KEEPERS = {"audit.audited", "audit.refuse", "audit.note"}
# The session decides the actor of these, a repair needs a broken database, a load of lanes names
# no single lane, and a flow changes in batches: other tests hold the law.
ELSEWHERE = {
    "sessions.open_session", "sessions.close_session", "repair.repair", "lanes.load",
    "flows.cancel", "flows.retry", "flows.reprioritize",
}  # fmt: skip


def verbs() -> Iterator[str]:
    for module in pkgutil.iter_modules(laneway.control.__path__):
        found = importlib.import_module(f"laneway.control.{module.name}")
        for name, thing in vars(found).items():
            if (
                not name.startswith("_")
                and inspect.isfunction(thing)
                and thing.__module__ == found.__name__
                and "by" in inspect.signature(thing).parameters
            ):
                yield f"{module.name}.{name}"


async def audit_entries(db: Database) -> list[AuditEntry]:
    return (await audit.listing(db, AuditFilter(outcome="done"), limit=200)).items


def part_of(state: Any, wanted: dict[str, object] | None) -> Any:
    return state if state is None or wanted is None else {name: state[name] for name in wanted}


def test_every_verb_with_actor_is_audited() -> None:
    assert set(verbs()) - READERS - KEEPERS - ELSEWHERE == set(CASES)


@pytest.mark.parametrize("name", CASES)
async def test_accepted_verb_leaves_exactly_one_audit_entry(
    db: Database, factory: JobFactory, name: str
) -> None:
    case = CASES[name]
    known = await case.prepare(db, factory)
    args, kwargs = case.call(known)
    prepared = len(await audit_entries(db))
    # Without its entry the change is undone: the interface is invalid; the same call works later.
    with pytest.raises(psycopg.errors.CheckViolation):
        await case.verb(db, *args, **kwargs, by=Actor("ann", door="window"))  # type: ignore[arg-type]
    assert len(await audit_entries(db)) == prepared
    await case.verb(db, *args, **kwargs, by=ANN)
    act, *older = await audit_entries(db)
    assert len(older) == prepared
    assert (act.action, act.kind, act.workspace) == (*case.act, case.workspace)
    assert act.name == object_of(name, known, args)
    assert (act.actor, act.door, act.request_id) == ("ann", "http", "req-1")
    assert (act.principal_id, act.address) == (ANN.principal_id, "192.0.2.7")
    assert act.claimed == ("request_id",)
    assert part_of(act.before, case.before) == case.before
    assert part_of(act.after, case.after) == case.after


def object_of(verb: str, known: Any, args: tuple[Any, ...]) -> str | None:
    if verb == "bulk.run":
        return None
    if verb.startswith(("access.", "sessions.")):
        named = {"access.create_role": "clerk", "sessions.bootstrap": "admin"}
        return named.get(verb) or (known if isinstance(known, str) else "bert")
    if isinstance(known, UUID):
        return str(known)
    named = {"lanes.create": "video", "history.rollback": "system", "lanes.move_type": "system"}
    if verb.startswith("freeze."):
        return "system"
    return named.get(verb) or (args[0] if args else "pause")


async def test_refused_verb_leaves_none(db: Database) -> None:
    for name, case in CASES.items():
        if case.refused is None:
            continue
        args, kwargs = case.refused()
        with pytest.raises((Refused, NotFound, InvalidInput)):
            await case.verb(db, *args, **kwargs, by=ANN)
        assert await audit_entries(db) == [], name


async def test_cancel_of_running_job_is_requested_and_audited(
    db: Database, factory: JobFactory
) -> None:
    claim = factory.running()
    await jobs.cancel(db, claim.job_id, by=ANN)
    (act,) = await audit_entries(db)
    assert act.before == {"status": "running"}
    assert act.after == {"status": "running", "reason": None, "cancel_requested": True}


async def test_late_approval_expires_job_and_is_not_audited(
    db: Database, factory: JobFactory
) -> None:
    job_id = await gated(db, factory)
    factory.conn.execute("update laneway.awaiting set expires_at = clock_timestamp()")
    with pytest.raises(Refused, match="is cancelled"):
        await approval.approve(db, job_id, by=ANN)
    assert (await jobs.show(db, job_id)).status == "cancelled"
    assert await audit_entries(db) == []


async def test_unchanged_setting_is_audited_too(db: Database) -> None:
    await lanes.tune(db, "system", {"max_slots": 1}, by=ANN)
    (act,) = await audit_entries(db)
    assert act.before == act.after == {"max_slots": 1}


async def test_rollback_or_thaw_without_effect_is_not_audited(db: Database) -> None:
    await limits.tune(db, "openai", {"max_concurrent": 3}, by=ANN)
    (change,) = await history.history(db, "limit", "openai")
    await history.rollback(db, "limit", "openai", to=change.id, by=ANN)
    await freeze.thaw(db, by=ANN)
    assert [act.action for act in await audit_entries(db)] == ["limit.tuned"]


async def test_schedule_is_rolled_back_in_its_workspace(db: Database, factory: JobFactory) -> None:
    await scheduled(db, factory)
    await schedules.disable(db, "nightly", by="setup")
    await history.rollback(db, "schedule", "nightly", by=ANN)
    await history.rollback(db, "schedule", "nightly", to=0, by=ANN)
    found = [
        (act.action, act.workspace, act.after is None) for act in (await audit_entries(db))[:2]
    ]
    assert found == [
        ("schedule.rolled_back", "north", True),
        ("schedule.rolled_back", "north", False),
    ]


async def test_limit_that_is_new_was_created(db: Database) -> None:
    await limits.tune(db, "gpu", {"max_concurrent": 1}, by=ANN)
    (act,) = await audit_entries(db)
    assert (act.action, act.before) == ("limit.created", None)


async def test_bulk_request_leaves_one_audit_entry(db: Database, factory: JobFactory) -> None:
    for _ in range(3):
        factory.submit("many")
    order = BulkRequest(verb=BulkVerb.REPRIORITIZE, wanted=JobFilter(job_type="many"), priority=9)
    await run_bulk(db, order, by=ANN)
    (act,) = await audit_entries(db)
    assert (act.action, act.name) == ("job.bulk_reprioritized", None)
    assert act.after == {
        "filter": {"job_type": "many"}, "upto": 3, "matched": 3, "is_more": False, "priority": 9,
    }  # fmt: skip


async def test_audit_entry_is_part_of_callers_transaction(db: Database) -> None:
    async def tune_in_vain() -> None:
        async with db.joined() as one:
            await lanes.tune(one, "system", {"max_slots": 3}, by=ANN)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await tune_in_vain()
    assert await audit_entries(db) == []
    async with db.joined() as one:
        await lanes.tune(one, "system", {"max_slots": 3}, by=ANN)
        await lanes.tune(one, "system", {"max_slots": 4}, by=ANN)
        await limits.tune(one, "openai", {"max_concurrent": 2}, by=ANN)
    found = [
        (part_of(act.before, {"max_slots": 0}), act.kind) for act in (await audit_entries(db))[1:]
    ]
    assert found == [({"max_slots": 3}, "lane"), ({"max_slots": 1}, "lane")]


async def test_larger_transaction_stays_as_durable_as_it_was(db: Database) -> None:
    """A wake-up alone need not wait for the disk; a change that it announces must."""
    async with db.joined() as one, one.connection() as conn:
        await conn.execute("set local synchronous_commit = on")
        await lanes.resume_all(one, by=ANN)
        found = await (await conn.execute("show synchronous_commit")).fetchone()
    assert found == ("on",)


async def test_concurrent_changes_each_record_previous_values(
    db: Database, factory: JobFactory
) -> None:
    """If read in advance, `before` would miss the concurrent change."""
    factory.conn.execute("begin")
    factory.conn.execute("update laneway.worker_lanes set max_slots = 5 where name = 'system'")
    async with asyncio.timeout(60):
        tuning = asyncio.create_task(lanes.tune(db, "system", {"max_slots": 7}, by=ANN))
        while not await _is_blocked(db):
            pass
        factory.conn.execute("commit")
        await tuning
    (act,) = await audit_entries(db)
    assert part_of(act.before, {"max_slots": 5}) == {"max_slots": 5}
    assert part_of(act.after, {"max_slots": 7}) == {"max_slots": 7}


async def _is_blocked(db: Database) -> bool:
    async with db.connection() as conn:
        found = await conn.execute(
            "select from pg_stat_activity where datname = current_database()"
            " and cardinality(pg_blocking_pids(pid)) > 0"
        )
        return found.rowcount > 0


async def test_secrets_in_changes_are_not_stored(db: Database) -> None:
    payload = {"url": "https://example.org", "api_key": "k", "login": {"Password": "p"}}
    await schedules.put(db, "nightly", {**NIGHTLY, "payload": payload}, by=ANN)
    (act,) = await audit_entries(db)
    assert act.after is not None
    assert act.after["payload"] == {
        "url": "https://example.org", "api_key": HIDDEN_FIELD, "login": {"Password": HIDDEN_FIELD},
    }  # fmt: skip


async def test_refusals_are_kept_as_such(db: Database) -> None:
    await audit.refuse(db, ANN, "lane.tuned", "lane", "system")
    assert await audit_entries(db) == []
    (act,) = (await audit.listing(db, AuditFilter(outcome="refused"))).items
    assert (act.action, act.name, act.before, act.after) == ("lane.tuned", "system", None, None)


async def test_audit_is_read_page_by_page(db: Database) -> None:
    for slots in range(5):
        await lanes.tune(db, "system", {"max_slots": slots}, by=ANN)
    seen: list[int] = []
    cursor: str | None = None
    while True:
        page = await audit.listing(db, limit=2, cursor=cursor)
        seen += [act.id for act in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(seen) == 5
    assert seen == sorted(seen, reverse=True)


async def test_filter_narrows(db: Database) -> None:
    await lanes.drain(db, "system", by=ANN)
    await limits.tune(db, "openai", {"max_concurrent": 2}, by="bob")
    day = timedelta(days=1)
    now = datetime.now(UTC)
    filters: list[tuple[dict[str, Any], int]] = [
        ({}, 2),
        ({"actor": "ann"}, 1),
        ({"door": "python"}, 1),
        ({"action": "lane.drained"}, 1),
        ({"kind": "limit"}, 1),
        ({"kind": "lane", "name": "system"}, 1),
        ({"name": "openai", "actor": "ann"}, 0),
        ({"workspace": "north"}, 0),
        ({"since": now - day}, 2),
        ({"since": now + day}, 0),
        ({"newer_than": 3600.0}, 2),
        ({"newer_than": 0.0}, 0),
    ]
    for wanted, count in filters:
        assert len((await audit.listing(db, AuditFilter(**wanted))).items) == count, wanted
