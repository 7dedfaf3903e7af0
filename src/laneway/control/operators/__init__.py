"""The functions that do declared operations in a database.

table.py    the table that binds an operation to its function. Start here.
lanes.py    operations on lanes; limits.py on limits; schedules.py on schedules;
            access.py on principals, roles, grants and tokens; audit.py on the audit;
            job_types.py on published job types; flows.py on flows;
            webhooks.py on webhooks;
            workers.py on the pause gate, frozen lanes and statistics
history.py  the history and the rollback of any of them
"""

from laneway.control.operators import (
    access,
    audit,
    flows,
    job_types,
    lanes,
    limits,
    schedules,
    webhooks,
    workers,
)
from laneway.control.operators.table import WORK, Operator, PageRequest, perform, read_page

__all__ = [
    "WORK",
    "Operator",
    "PageRequest",
    "access",
    "audit",
    "flows",
    "job_types",
    "lanes",
    "limits",
    "perform",
    "read_page",
    "schedules",
    "webhooks",
    "workers",
]
