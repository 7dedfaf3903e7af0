"""Publishes the end hooks of a worker, and warns of those that look wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from laneway.domain.end_hook import EndHook
from laneway.observability.safe_logger import SafeLogger
from laneway.store import end_hooks
from laneway.store.database import Database
from laneway.store.unpublished_types import find_unpublished

log = SafeLogger("laneway")


async def publish_hooks(database: Database, hooks: Mapping[str, Collection[EndHook]]) -> None:
    """Publish the hooks of each application, and delete those that its code no longer has."""
    for other in await database.run(end_hooks.publish(hooks)):
        log.warning(
            "end hook %s was published by %s with other job types, statuses or workspaces: the"
            " newest publication counts. Make them equal, or give one another name=",
            other.name, other.application,
        )  # fmt: skip


async def warn_of_unknown_types(database: Database, hooks: Collection[EndHook]) -> None:
    """Log which hooks name a job type that no worker has published; that may follow later."""
    named = {job_type for hook in hooks for job_type in hook.job_types or ()}
    unknown = await find_unpublished(database, named)
    for hook in hooks:
        for job_type in hook.job_types or ():
            if job_type in unknown:
                log.warning(
                    "end hook %s: no worker has published the job type %s%s",
                    hook.name, job_type, unknown[job_type],
                )  # fmt: skip
