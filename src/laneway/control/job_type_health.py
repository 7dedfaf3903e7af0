"""The checks of `laneway doctor` on job types: who publishes, serves and fails them."""

from __future__ import annotations

from shlex import quote
from typing import Final

from laneway.control import stats
from laneway.control.audit import listing
from laneway.control.circles import first_circle
from laneway.control.health_check import HealthCheck, and_more, fail, ok, warn
from laneway.domain.audit import AuditFilter
from laneway.domain.job_type import forget_command
from laneway.domain.suggestion import suggest
from laneway.domain.text import visible
from laneway.domain.webhook import DELIVERY_CURE, WEBHOOK_TYPE
from laneway.store import end_hooks, health, job_types, schedules, waits, workers
from laneway.store.database import Database
from laneway.store.unpublished_types import find_unpublished

STALE_SHOWN: Final = 100
# Job types with due jobs that `doctor` reads.
TYPES_SCANNED: Final = 10_000
# Audit actions of remote workers whose tokens lack workers:declare.
LIMIT_REFUSED: Final = "AcquireLimits"
DECLARATION_IGNORED: Final = "DeclareTypes"
LACKS_S: Final = 7 * 86_400.0
LACKS_SHOWN: Final = 50
# Groups of failures, and names, that a message shows.
SHOWN: Final = 3
FAILURE_WINDOW_S: Final = 3600


async def check_publishers(db: Database) -> HealthCheck:
    """No application that is gone restricts others, and no two publish a type differently."""
    name = "job types"
    stale = await db.run(job_types.publishers(stale_only=True, limit=STALE_SHOWN + 1))
    if stale:
        first, more = stale[0], and_more(stale, STALE_SHOWN)
        step = forget_command(first.application, first.job_type)
        return warn(
            name, f"{first}{more}: its approval policy binds others until you remove it", step
        )
    found = await db.run(workers.conflicts())
    if not found:
        return ok(name, "applications agree about every job type")
    step = forget_command("APPLICATION", found[0].job_type)
    return warn(
        name,
        f"{found[0]}{and_more(found)}: the stricter policy applies",
        f"make the handlers equal; for an application that is gone, {step}",
    )


async def check_handlers(db: Database) -> HealthCheck:
    """A live worker handles every job type with due jobs, in its lane."""
    name = "handlers"
    found = await db.run(health.find_unhandled(most=TYPES_SCANNED))
    if not found:
        return await _check_schedules(db, name)
    first = found[0]
    others = ", ".join(visible(each.job_type) for each in found[1 : SHOWN + 1])
    if first.job_type == WEBHOOK_TYPE:
        waited = f"its first job has waited {first.waited_s:.0f} s"
        return warn(name, f"no live worker or server delivers to webhooks; {waited}", DELIVERY_CURE)
    names = await db.run(workers.published_names())
    near = "" if first.job_type in names else suggest(first.job_type, names)
    return warn(
        name,
        f"no live worker handles {visible(first.job_type)} in the lane {visible(first.lane)};"
        f" its first job has waited {first.waited_s:.0f} s{and_more(found)}"
        + (f": {others}" if others else "")
        + near,
        "start a worker that has the handler and serves the lane; list the jobs with"
        f" `laneway jobs ls --status queued --type {quote(visible(first.job_type))}`",
    )


async def _check_schedules(db: Database, name: str) -> HealthCheck:
    """A live worker handles the job type of every enabled schedule."""
    served = {
        job_type
        for worker in await db.run(workers.listing())
        if worker.is_live
        for job_type in worker.job_types
    }
    unserved = [
        each.schedule
        for each in await db.run(schedules.read(as_text=True, recent=0))
        if each.schedule.enabled and each.schedule.job_type not in served
    ]
    if not unserved:
        return ok(name, "live workers handle every waiting and every scheduled job type")
    first = unserved[0]
    return warn(
        name,
        f"no live worker handles {visible(first.job_type)}, which the schedule"
        f" {visible(first.name)} submits{and_more(unserved)}",
        "start a worker that has the handler, or disable the schedule with"
        f" `laneway schedules disable {quote(visible(first.name))}`",
    )


async def check_hooks(db: Database) -> HealthCheck:
    """Every job type that an end hook or an enabled webhook names has been published."""
    name = "hooks"
    named = await db.run(end_hooks.job_types_of())
    unknown = await find_unpublished(db, {each for types in named.values() for each in types})
    found = [(hook, each) for hook, types in named.items() for each in types if each in unknown]
    if not found:
        return ok(name, "workers have published every job type that hooks and webhooks name")
    hook, job_type = found[0]
    near = visible(unknown[job_type])
    return warn(
        name,
        f"the {visible(hook)} is for the job type {visible(job_type)},"
        f" which no worker has published{near}{and_more(found)}",
        "correct the name in @lw.on_end or with `laneway webhooks set WEBHOOK --job-types A,B`, or"
        " start a worker that has the type",
    )


async def check_remote_tokens(db: Database) -> HealthCheck:
    """No remote worker lacked workers:declare within the last week."""
    name = "remote tokens"
    limits, types = [
        await listing(
            db,
            AuditFilter(action=action, outcome="refused", newer_than=LACKS_S),
            limit=LACKS_SHOWN,
        )
        for action in (LIMIT_REFUSED, DECLARATION_IGNORED)
    ]
    problems = []
    if limits.items:
        actors = ", ".join(sorted({entry.actor for entry in limits.items}))
        problems.append(f"handlers of {actors} ask for ctx.limit, which their tokens may not hold")
    if types.items:
        actors = ", ".join(sorted({entry.actor for entry in types.items}))
        problems.append(f"{actors} declares job types that differ from the published ones")
    if not problems:
        return ok(name, "no remote worker exceeded its token within a week")
    step = (
        "grant workers:declare in the lanes of the jobs; or name limits in the handler's limits=[…]"
        " and make declarations equal to the published ones"
    )
    return warn(name, "; ".join(problems), step)


async def check_circles(db: Database) -> HealthCheck:
    """No job waits for one that cannot start because of it."""
    name = "circles"
    graph = await db.run(waits.graph())
    found = first_circle(graph) if graph is not None else None
    if found is None:
        return ok(name, "no job waits for one that it keeps from starting")
    job_id, reason = found
    text, _, cure = reason.message.partition("; ")
    return fail(name, f"job {job_id} cannot start: {text.replace('this job', 'it')}", cure)


async def check_failures(db: Database) -> HealthCheck:
    """No job failed within the last hour."""
    name = "failures"
    found = await stats.failures(db, window_s=FAILURE_WINDOW_S, limit=SHOWN + 1)
    if not found.items:
        return ok(name, "no job failed within the last hour")
    groups = [
        f"{each.failures:,} of {visible(each.job_type)} ({visible(each.error_type or 'no type')})"
        for each in found.items[:SHOWN]
    ]
    more = " and others" if len(found.items) > SHOWN else ""
    return warn(
        name,
        f"jobs failed within the last hour: {', '.join(groups)}{more}",
        f"look at one with `laneway jobs show {found.items[0].example}`, at all with"
        f" `laneway admin failures`; then `laneway jobs retry --type"
        f" {quote(visible(found.items[0].job_type))} --status failed`",
    )
