"""A typed client of the HTTP API, for programs without a database login.

    from laneway.http import AsyncClient, Client

client.py      the two clients. Start here.
verbs.py       their methods, written once, under the names of the server's operations
call.py        a request as a value; jobs.py, flows.py and operations.py build one for each method
declared.py    the requests of declared operations (laneway.operations)
decode.py      responses as domain values; models.py has the types that only HTTP has
procedure.py   send, retry, follow a stream: generators of steps that runners.py runs
sse.py         a parser of server-sent events
problems.py    the server's errors as laneway.errors

Uses domain, errors and tracing; only app, cli and mcp may use it.
"""

# ruff: noqa: E402 - a missing package is named before the modules below import it

from laneway.extras import require

require("http", "a client of the server")

from laneway.domain.bulk import BulkPreview, BulkRun
from laneway.domain.overview import JobSummary
from laneway.http.client import AsyncClient, Client
from laneway.http.models import (
    ControlChanged,
    Event,
    Health,
    JobsChanged,
    Me,
    Opened,
    Readiness,
    Submitted,
    SubmittedFlow,
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
    "JobSummary",
    "JobsChanged",
    "Me",
    "Opened",
    "Pages",
    "Readiness",
    "Submitted",
    "SubmittedFlow",
]
