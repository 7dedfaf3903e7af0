"""An application's verbs on its jobs, async and sync: submit, wait, cancel, get.

    client.py     the verbs; with `conn=` they run inside the caller's transaction
    spec.py       checks the input of a submit and makes a NewJob of it
    catalog.py    the job types known here: own handlers, otherwise what workers published
    decisions.py  cancel, approve and reject, each with its audit entry
    handle.py     the result of a submit
    flow.py       `lw.flow(…)`: jobs submitted together; flow_draft.py stores them
    flow_verbs.py the verbs on flows and events
    progress_bar.py  the bar of `job.watch()`
    outcome.py    the result of a job that ended
    limits.py     limits held outside of jobs
    sync.py       the same verbs without an event loop; portal.py is the thread behind it

Imports domain, store, config, errors. Start at client.py.
"""

from __future__ import annotations

from laneway.client.catalog import KnownHandler, KnownHandlers
from laneway.client.client import Client
from laneway.client.flow import FlowHandle, SyncFlowHandle
from laneway.client.handle import JobHandle, SyncJobHandle
from laneway.client.parents import JobRef
from laneway.client.spec import Given, JobOptions, NewJobSpec
from laneway.client.sync import SyncClient
from laneway.domain.payload import JsonText

__all__ = [
    "Client",
    "FlowHandle",
    "Given",
    "JobHandle",
    "JobOptions",
    "JobRef",
    "JsonText",
    "KnownHandler",
    "KnownHandlers",
    "NewJobSpec",
    "SyncClient",
    "SyncFlowHandle",
    "SyncJobHandle",
]
