"""Commits submits that arrive together in one transaction, so that they share one disk flush."""

from __future__ import annotations

from typing import Final

from laneway.api.http.full_principals import FullPrincipals
from laneway.domain.actor import Actor
from laneway.domain.job import Job, NewJob
from laneway.errors import QuotaExceeded
from laneway.store import grouped_submit as store
from laneway.store.batcher import Batcher
from laneway.store.database import Database
from laneway.store.quotas import Quota

# Submits per commit; fewer at the end of an iteration of the event loop.
FULL: Final = 24
# A small submit weighs one; a commit then takes about 1 MiB.
_WEIGHT_BYTES: Final = 1024 * 1024 // FULL
# Commits in progress at a time; the server handles other requests meanwhile.
AT_ONCE: Final = 4


class UniqueType(Exception):
    """Nothing is stored: jobs of this type have become unique, so submit it separately."""


class GroupCommit:
    """Stores submits when a commit is free: a single one immediately, many under load."""

    def __init__(self, database: Database, full: FullPrincipals | None = None) -> None:
        self._database = database
        # Submits of these principals are committed separately.
        self._full = FullPrincipals() if full is None else full
        self._batcher: Batcher[store.Request, Job | None] = Batcher(
            self._store, most=FULL, weigh=_weight, at_once=AT_ONCE, splits_aborted=True
        )

    async def submit(self, job: NewJob, actor: Actor, quota: Quota | None = None) -> Job:
        """Store a job without a unique_key, together with its audit entry.

        Raises UniqueType if its type has published that its jobs are unique.
        """
        is_full = quota is not None and quota.principal_id in self._full
        store_all = self._store if is_full else self._batcher.run
        try:
            (stored,) = await store_all([(job, actor, quota)])
        except QuotaExceeded:
            if quota is not None:
                self._full.note(quota.principal_id)
            raise
        if stored is None:
            raise UniqueType
        return stored

    async def close(self) -> None:
        """Wait for the commits in progress."""
        await self._batcher.drain()

    async def _store(self, requests: list[store.Request]) -> list[Job | None]:
        stored = {job.id: job for job in await self._database.run(store.submit(requests))}
        return [stored.get(job.id) for job, _, _ in requests]


def _weight(request: store.Request) -> int:
    return 1 + len(request[0].payload) // _WEIGHT_BYTES
