"""Verbs on limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from laneway.control import notifications
from laneway.control.audit import audited
from laneway.domain.limit import (
    HoldingJob,
    Limit,
    LimitStatus,
    Tuned,
    check_limit_name,
    validate_limit_change,
)
from laneway.domain.missing import missing
from laneway.domain.text import log_words
from laneway.domain.verb_rules import check_actor
from laneway.errors import InvalidInput, MissingRight, Refused
from laneway.observability.safe_logger import SafeLogger
from laneway.store import holds
from laneway.store import limits as store
from laneway.store.database import Database
from laneway.store.limits import LimitLoad

log = SafeLogger("laneway.control")

WAITING_BOUND: Final = 10_000
# laneway.limit_holders takes as many names.
HOLDERS_AT_ONCE: Final = 100


async def inspect(db: Database) -> list[LimitStatus]:
    """Every limit with its use, by name."""
    found = await db.run(store.read(WAITING_BOUND))
    return await _with_holders(db, found)


async def get(db: Database, name: str) -> LimitStatus:
    """One limit with its use."""
    found = await db.run(store.read(WAITING_BOUND, check_limit_name(name)))
    if not found:
        raise missing("limit", name)
    return (await _with_holders(db, found))[0]


async def _with_holders(db: Database, loads: Sequence[LimitLoad]) -> list[LimitStatus]:
    """The limits with some of their holders, if the database role may read them."""
    used = [load.limit.name for load in loads if load.running]
    holders: dict[str, list[str]] = {}
    jobs: dict[str, list[HoldingJob]] = {}
    try:
        for start in range(0, len(used), HOLDERS_AT_ONCE):
            names = used[start : start + HOLDERS_AT_ONCE]
            holding = await db.run(store.holding_jobs(names))
            jobs.update(holding)
            for each in await db.run(holds.find_holders(names)):
                holders[each.name] = each.holders
    except MissingRight:
        holders = {}
    return [
        LimitStatus(
            load.limit,
            load.running,
            load.busiest,
            min(load.waiting, WAITING_BOUND),
            load.waiting > WAITING_BOUND,
            tuple(holders.get(load.limit.name, ())),
            tuple(jobs.get(load.limit.name, ())),
        )
        for load in loads
    ]


async def tune(db: Database, name: str, change: Mapping[str, object], *, by: str) -> Tuned:
    """Change or create a limit; takes effect at every worker's next claim."""
    check_actor(by)
    check_limit_name(name)
    checked = validate_limit_change(change)
    if not checked:
        raise InvalidInput("limit", "give at least one setting to change")
    async with audited(db, by, "limit.tuned", "limit", name) as audited_change:
        changed = await audited_change.run(store.tune(name, checked, by))
        made = None
        if changed is None:
            made = await audited_change.run(store.create(Limit.of({"name": name, **checked}), by))
            # None: another caller created it a moment ago.
            changed = made or await audited_change.run(store.tune(name, checked, by))
        if changed is None:
            raise Refused(f"the limit {name} is being created or deleted by others: try again")
        if made is not None:
            audited_change.action = "limit.created"
        await audited_change.compare("limit", name, checked)
    log.info("limit %s: %s, by %s", name, log_words(checked), by)
    # It is not known here which types waited for it.
    await notifications.wake(db, None)
    return Tuned(changed, made is not None)


async def delete(db: Database, name: str, *, by: str) -> None:
    """Delete a limit that nothing needs."""
    check_actor(by)
    check_limit_name(name)
    async with audited(db, by, "limit.deleted", "limit", name) as audited_change:
        answer = await audited_change.run(store.delete(name, by))
        if answer.blocker is not None:
            raise Refused(f"the limit {name} cannot be deleted: {answer.blocker}")
        if not answer.is_gone:
            raise missing("limit", name)
        await audited_change.compare("limit", name, {"name": name})
    log.info("limit %s: deleted by %s", name, by)
