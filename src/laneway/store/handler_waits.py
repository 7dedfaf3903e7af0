"""Waits of handlers, as statements: stored by the running attempt, met done by later attempts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from laneway.domain.claim import Claim
from laneway.domain.review import HandlerWait
from laneway.store import jobs
from laneway.store.arrays import array_of_numbers
from laneway.store.statement import Row, Statement

if TYPE_CHECKING:
    # The driver is imported when it is needed.
    from laneway.store.batch import Entry

# Results read at once, and the bytes after which a page ends: one result may have a megabyte.
PAGE: Final = 1000
PAGE_BYTES: Final = 2 * 1024 * 1024
# Waits shown with a job.
MAX_WAITS: Final = 200


class StoredWait(NamedTuple):
    """A wait that a handler asked for in an earlier run.

    `total`: the number of sub-jobs that it was given; `stored`: how many of them are submitted.
    `state`: done or timed_out, with the payload of the event as JSON text in `result`; None if the
    answer is not final or not small, and always from a server: `begin` asks for it.
    """

    name: str
    kind: str
    event: str | None = None
    key: str | None = None
    total: int | None = None
    stored: int | None = None
    state: str | None = None
    result: str | None = None


class NewWait(NamedTuple):
    """A sleep or a wait for an event that a handler asks for; `seconds` None: no timeout."""

    name: str
    kind: str
    seconds: float | None
    event: str | None = None
    key: str | None = None


class WaitWrite(NamedTuple):
    """The result of storing a wait: kept, cancel_requested, fenced or busy; open, done, timed_out.

    `result` is the payload of the event, as JSON text.
    """

    answer: str
    state: str | None
    result: str | None


class SubJobsWrite(NamedTuple):
    """The result of storing sub-jobs: kept, cancel_requested, fenced or busy; how many there are.

    `job_types`: the types of those stored now.
    """

    answer: str
    stored: int | None
    job_types: list[str] | None


class EndedRow(NamedTuple):
    """A job whose result a handler reads, as JSON text.

    `status`: `open` if the handler still waits for it, None if it was deleted.
    """

    id: UUID | None
    job_type: str | None
    name: str | None
    status: str | None
    result: str | None


def read(claims: Sequence[Claim]) -> Statement[list[list[StoredWait]]]:
    """The waits of each job so far, in the order in which its handler asked for them."""

    def decode(rows: list[Row]) -> list[list[StoredWait]]:
        found: dict[int, list[StoredWait]] = {claim.seq: [] for claim in claims}
        for seq, *row in rows:
            found[seq].append(StoredWait(*row))
        return [found[claim.seq] for claim in claims]

    seqs = array_of_numbers([claim.seq for claim in claims])
    return Statement("handler_waits/read_waits", decode, {"seqs": seqs}, may_be_large=True)


def listing(job_id: UUID) -> Statement[list[HandlerWait]]:
    """The newest waits of a job's handler, in order, without payloads of events."""
    return Statement(
        "handler_waits/list_waits",
        lambda rows: [HandlerWait(*row) for row in rows],
        {"id": job_id, "limit": MAX_WAITS},
    )


def begin(claim: Claim, wait: NewWait) -> Statement[WaitWrite]:
    """Stores a sleep or a wait for an event, or looks at the one of this name."""
    return Statement(
        "handler_waits/begin_wait",
        lambda rows: WaitWrite(*rows[0]),
        {"seq": claim.seq, "attempt": claim.attempt, **wait._asdict()},
    )


def submit_sub_jobs(
    claim: Claim, name: str, total: int, offset: int, entries: Sequence[Entry]
) -> Statement[SubJobsWrite]:
    """Stores the next sub-jobs of a wait: those after `offset` of `total`."""
    kinds: dict[str, int] = {}
    kind_of = [
        kinds.setdefault(json.dumps(jobs.json_settings(like)), len(kinds)) for _, _, like in entries
    ]
    return Statement(
        "handler_waits/submit_sub_jobs",
        lambda rows: SubJobsWrite(*rows[0]),
        {
            "seq": claim.seq,
            "attempt": claim.attempt,
            "name": name,
            "total": total,
            "offset": offset,
            "ids": ",".join([entry[0].hex for entry in entries]),
            "payloads": f"[{','.join([entry[1] for entry in entries])}]",
            "kind_of": ",".join(map(str, kind_of)),
            "kinds": f"[{','.join(kinds)}]",
        },
    )


def _ended(rows: list[Row]) -> list[EndedRow]:
    return [EndedRow(*row) for row in rows]


def sub_job_results(
    claim: Claim, name: str, after: int, limit: int = PAGE
) -> Statement[list[EndedRow]]:
    """The next results of the sub-jobs of a wait, in order."""
    return Statement(
        "handler_waits/read_sub_jobs",
        _ended,
        {
            "seq": claim.seq,
            "name": name,
            "after": after,
            "limit": limit,
            "bytes": PAGE_BYTES,
        },
        may_be_large=True,
    )


def results_of(claim: Claim, after: int, limit: int = PAGE) -> Statement[list[EndedRow]]:
    """The next results of the jobs that a job came after, in order."""
    return Statement(
        "handler_waits/read_results",
        _ended,
        {"seq": claim.seq, "after": after, "limit": limit, "bytes": PAGE_BYTES},
        may_be_large=True,
    )
