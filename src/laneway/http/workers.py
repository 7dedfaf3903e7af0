"""Calls about one worker."""

from __future__ import annotations

from uuid import UUID

from laneway.domain.overview import WorkerRow
from laneway.http.call import Call, CallResponse, once
from laneway.http.declared import read
from laneway.http.jobs import checked_id


def drain_worker(worker_id: UUID | str) -> Call[WorkerRow]:
    """Stop a worker from claiming; its running jobs finish."""
    return _switch(worker_id, "drain")


def resume_worker(worker_id: UUID | str) -> Call[WorkerRow]:
    """Let a drained worker claim again."""
    return _switch(worker_id, "resume")


def _switch(worker_id: UUID | str, verb: str) -> Call[WorkerRow]:
    path = f"/admin/workers/{checked_id(worker_id)}/{verb}"
    return once(Call("POST", path, _worker))


def _worker(response: CallResponse) -> WorkerRow:
    row: WorkerRow = read(WorkerRow, response.body)
    return row
