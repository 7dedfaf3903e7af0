"""Operations on published job types, done in a database."""

from __future__ import annotations

from laneway.control import job_types
from laneway.control.operators.table import implement_list
from laneway.operations import job_types as operations

implement_list(
    operations.list_job_types,
    lambda who, page, *, lane=None: job_types.listing(
        who.db, lanes=who.within(lane), limit=page.limit, cursor=page.cursor
    ),
)
implement_list(
    operations.list_publishers,
    lambda who, page, job_type=None, stale_only=False: job_types.publishers(
        who.db, job_type=job_type, stale_only=stale_only, limit=page.limit, cursor=page.cursor
    ),
)
