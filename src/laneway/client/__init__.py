"""Submit, wait, cancel, get: what an application does with its jobs, async and sync.

    client.py   the verbs; with `conn=` they run inside the caller's own transaction
    spec.py     what is handed to a submit, checked and turned into a NewJob
    catalog.py  what this process knows of job types: its own handlers, else what workers published
    acts.py     cancel, approve, reject, each with its act in the audit
    handle.py   what a submit answers
    sync.py     the same verbs without an event loop; portal.py is the thread behind it

Imports domain, store, config, errors. Start at client.py.
"""

from __future__ import annotations

from laneway.client.catalog import KnownHandler, KnownHandlers
from laneway.client.client import Client
from laneway.client.handle import JobHandle, SyncJobHandle
from laneway.client.spec import NewJobSpec
from laneway.client.sync import SyncClient
from laneway.domain.payload import JsonText

__all__ = [
    "Client",
    "JobHandle",
    "JsonText",
    "KnownHandler",
    "KnownHandlers",
    "NewJobSpec",
    "SyncClient",
    "SyncJobHandle",
]
