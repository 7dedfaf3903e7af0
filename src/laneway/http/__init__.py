"""A typed client of the HTTP API, for programs without a database login.

    from laneway.http import AsyncClient, Client

client.py      the two clients. Start here.
verbs.py       their methods, written once, under the names of the server's operations
jobs.py, operations.py, schedules.py, access.py   each method's request, as a value (call.py)
decode.py      answers as domain values; models.py has those that no other door knows
flow.py        send, retry, follow a stream: generators of steps, which shells.py takes
sse.py         server-sent events out of bytes
problems.py    refusals as laneway.errors

Uses domain, errors and tracing; only wiring, cli and mcp may use it.
"""

from laneway.http.client import AsyncClient, Client
from laneway.http.models import (
    BulkPreview,
    BulkRun,
    ControlChanged,
    Event,
    Health,
    JobsChanged,
    JobStanding,
    Me,
    Opened,
    Readiness,
    Submitted,
)
from laneway.http.pages import AsyncPages, Pages

__all__ = [
    "AsyncClient",
    "AsyncPages",
    "BulkPreview",
    "BulkRun",
    "Client",
    "ControlChanged",
    "Event",
    "Health",
    "JobStanding",
    "JobsChanged",
    "Me",
    "Opened",
    "Pages",
    "Readiness",
    "Submitted",
]
