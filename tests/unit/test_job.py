"""Jobs as interfaces show them, and their ids."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from laneway.domain.claim import Claim
from laneway.domain.event import Event, job_at
from laneway.domain.job import Attempt, Job, JobIds, LogLine, NewJob, Progress, new_job_id
from laneway.domain.job_error import JobError
from laneway.domain.states import Status
from laneway.errors import InvalidInput

CONTRACT_FIELDS = [
    "id",
    "job_type",
    "lane",
    "status",
    "label",
    "priority",
    "payload",
    "result",
    "error",
    "progress",
    "checkpoint",
    "analysis",
    "attempt",
    "retries",
    "max_retries",
    "workspace",
    "tags",
    "unique_key",
    "concurrency_key",
    "created_at",
    "created_by",
    "approved_at",
    "approved_by",
    "expires_at",
    "run_at",
    "claimed_by",
    "worker",
    "claimed_at",
    "lease_until",
    "last_progress_at",
    "cancel_requested_at",
    "cancel_reason",
    "cancelled_by",
    "started_at",
    "finished_at",
    "flow",
    "waits_for",
    "attempts",
]

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=1)))


def a_job(**fields: Any) -> Job:
    return Job(
        **{
            "id": UUID(int=1),
            "job_type": "ingestion",
            "lane": "interactive",
            "status": Status.RUNNING,
            **fields,
        }
    )


def test_job_is_shown_under_the_contracts_names_and_no_others() -> None:
    assert list(a_job().to_dict()) == CONTRACT_FIELDS


@pytest.mark.parametrize(
    "status, approved_by, label",
    [
        ("approved", None, "queued"),
        ("approved", "ann", "approved"),
        ("approved", "policy", "approved"),
        ("pending", None, "analysing"),
        ("awaiting_approval", None, "awaiting_approval"),
        ("running", None, "running"),
        ("completed", "ann", "completed"),
    ],
)
def test_label_claims_no_approval_that_was_not_asked_for(
    status: str, approved_by: str | None, label: str
) -> None:
    shown = a_job(status=Status(status), approved_by=approved_by).to_dict()
    assert (shown["status"], shown["label"]) == (status, label)


def test_label_in_an_event_is_that_of_its_moment() -> None:
    state = {"status": "approved", "attempt": 0, "error": None, "approved_by": None}
    event = Event(1, 7, "job.submitted", "default", "default", "t", "ann", state)
    shown = job_at(event, a_job(status=Status.COMPLETED, attempt=1), debug=False)
    assert (shown["status"], shown["label"]) == ("approved", "queued")


def test_shown_job_is_json_ready() -> None:
    error = JobError("ValueError", "no", "Traceback …")
    log = (LogLine(AT, "INFO", "hello"),)
    job = a_job(
        payload={"a": 1},
        error=error,
        progress=Progress.of(1, 4, "first"),
        created_at=AT,
        claimed_by=UUID(int=2),
        tags=("x",),
        attempts=(Attempt(1, "host", UUID(int=2), AT, error=error, log=log),),
    )
    shown = json.loads(json.dumps(job.to_dict()))
    assert shown["status"] == "running"
    assert shown["created_at"] == "2026-01-02T02:04:05.678901Z"
    assert shown["claimed_by"] == str(UUID(int=2))
    assert shown["progress"] == {
        "stage": None,
        "done": 1,
        "total": 4,
        "percent": 25.0,
        "message": "first",
    }
    assert shown["error"] == {"type": "ValueError", "message": "no", "traceback": "Traceback …"}
    assert shown["attempts"][0]["log"][0]["message"] == "hello"


def test_without_debug_neither_tracebacks_nor_logs_are_shown() -> None:
    error = JobError("ValueError", "no", "secret")
    attempt = Attempt(1, error=error, log=(LogLine(AT, "INFO", "secret"),))
    text = json.dumps(a_job(error=error, attempts=(attempt,)).to_dict(debug=False))
    assert "secret" not in text
    assert "ValueError" in text


def test_only_the_answer_to_a_second_submit_is_marked_duplicate() -> None:
    assert a_job(duplicate=True).to_dict()["duplicate"] is True
    assert "duplicate" not in a_job().to_dict()


@pytest.mark.parametrize(
    "done, total, percent",
    [(0, 0, None), (None, 5, None), (3, None, None), (1, 3, 33.33), (9, 3, 100.0), (-1, 3, 0.0)],
)
def test_percent_is_worked_out_and_stays_within_its_range(
    done: float | None, total: float | None, percent: float | None
) -> None:
    assert Progress.of(done, total).percent == percent


def test_claims_of_two_attempts_differ() -> None:
    assert Claim(1, UUID(int=1), 1) != Claim(1, UUID(int=1), 2)
    assert len({Claim(1, UUID(int=1), 1), Claim(1, UUID(int=1), 1)}) == 1


def test_job_ids_are_uuid7_of_now() -> None:
    before = time.time_ns() // 1_000_000
    made = new_job_id()
    after = time.time_ns() // 1_000_000
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"
    assert before <= made.int >> 80 <= after + 1


def test_job_ids_of_a_process_only_grow_also_between_threads() -> None:
    made: list[UUID] = []
    lock = threading.Lock()

    def make() -> None:
        for _ in range(500):
            with lock:
                made.append(new_job_id())

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == sorted(set(made))


def test_job_ids_grow_while_the_clock_stands_or_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns()
    clock = iter([now, now, now - 10**12, now - 10**12, now + 10**9])
    monkeypatch.setattr("laneway.domain.job.time.time_ns", lambda: next(clock))
    made = [new_job_id() for _ in range(5)]
    assert made == sorted(set(made))


def test_full_counter_moves_on_to_the_next_millisecond() -> None:
    millis = time.time_ns() // 1_000_000 + 60_000
    ids = JobIds(millis, counter=2**42 - 2)
    first, last = ids.next(), ids.next()
    assert last > first
    assert (first >> 80, last >> 80) == (millis, millis + 1)
    assert UUID(int=last).version == 7


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_does_not_count_on_from_its_parent(tmp_path: Path) -> None:
    id_file = tmp_path / "id"
    program = f"""
import os, pathlib, time
now = time.time_ns()
time.time_ns = lambda: now
from laneway.domain.job import new_job_id
new_job_id()
if (child := os.fork()) == 0:
    pathlib.Path({str(id_file)!r}).write_text(str(new_job_id().int))
    os._exit(0)
os.waitpid(child, 0)
print(new_job_id().int)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    # Without the random end.
    assert int(ran.stdout) >> 32 != int(id_file.read_text()) >> 32


def a_submit(**fields: Any) -> NewJob:
    return NewJob(**{"id": UUID(int=1), "job_type": "ingestion", **fields})


@pytest.mark.parametrize(
    "fields, field",
    [
        ({"job_type": ""}, "job_type"),
        ({"job_type": "a\x00"}, "job_type"),
        ({"priority": 2**15}, "priority"),
        ({"priority": 1.5}, "priority"),
        ({"priority": True}, "priority"),
        ({"max_retries": -1}, "max_retries"),
        ({"delay": -1}, "delay"),
        ({"delay": float("nan")}, "delay"),
        ({"delay": 1e12}, "delay"),
        ({"delay": 10**400}, "delay"),
        ({"delay": 1, "run_at": AT}, "delay"),
        ({"run_at": AT.replace(tzinfo=None)}, "run_at"),
        ({"run_at": "2026-01-01"}, "run_at"),
        ({"unique_key": "x" * 513}, "unique_key"),
        ({"unique_key": ""}, "unique_key"),
        ({"workspace": ""}, "workspace"),
        ({"workspace": "a\ud800"}, "workspace"),
        ({"tags": ("ok", "\x00")}, "tags[1]"),
        ({"tags": "abc"}, "tags"),
        ({"tags": ("x",) * 65}, "tags"),
        ({"created_by": "\x00"}, "created_by"),
        ({"traceparent": ""}, "traceparent"),
    ],
)
def test_submit_no_row_should_hold_is_refused_by_field(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        a_submit(**fields).check()
    assert caught.value.field == field


def test_ordinary_submit_is_taken() -> None:
    job = a_submit(priority=-5, run_at=datetime.now(UTC), tags=("a", "b"), unique_key="k")
    assert job.check() is job
    a_submit(delay=0.5, max_retries=0, created_by="ann", workspace="w").check()
