"""Calls about one worker."""

from __future__ import annotations

from uuid import UUID

from laneway.domain.overview import WorkerRow
from laneway.http import decode
from laneway.http.call import Call, CallResponse, once
from laneway.http.jobs import checked_id


def drain_worker(worker_id: UUID | str) -> Call[WorkerRow]:
    """The worker claims nothing more, as soon as it learns of it; what it runs finishes."""
    return _told(worker_id, "drain")


def resume_worker(worker_id: UUID | str) -> Call[WorkerRow]:
    """A drained worker claims again."""
    return _told(worker_id, "resume")


def _told(worker_id: UUID | str, verb: str) -> Call[WorkerRow]:
    path = f"/admin/workers/{checked_id(worker_id)}/{verb}"
    return once(Call("POST", path, _worker))


def _worker(answer: CallResponse) -> WorkerRow:
    return decode.worker(answer.body)
