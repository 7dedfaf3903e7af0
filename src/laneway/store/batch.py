"""Many new jobs in one transaction: by COPY where driver and role may, else by one call.

Roles that may not write the tables call `laneway.submit_batch`, which decides what waits for an
approval itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from laneway.config.settings import Settings
from laneway.domain.approval import NEEDS_SUBMITTER
from laneway.domain.job import DEFAULT_MAX_RETRIES, NewJob
from laneway.domain.states import Status
from laneway.errors import InvalidInput
from laneway.store import copytext, events, jobs
from laneway.store.bounds import bounded_transaction
from laneway.store.caller_connection import CallerConnection, borrow
from laneway.store.copytext import array_literal, column, escape
from laneway.store.database import AsyncConn
from laneway.store.statement import Row, Statement

Key = tuple[str, str, str]

# Small enough that the server stores one part while the next is made.
_PART: Final = 250
# As laneway.submit has it.
_EARLIEST: Final = timedelta(days=-36_524)
_LATEST: Final = timedelta(days=36_889)
_APPROVED: Final = Status.APPROVED.value
# What a call says of jobs that are alike.
_SAID: Final = (
    "job_type", "workspace", "priority", "max_retries", "delay", "unique_key", "created_by",
    "traceparent", "concurrency_key", "needs", "max_age",
)  # fmt: skip


# One job of a batch: its id and payload, all else like a job that many may share. Plain tuples
# here, because a thousand of anything else costs as much as storing them.
Entry: TypeAlias = tuple[UUID, str, NewJob]
# Id, status and whether it is a duplicate, as in jobs.Submitted.
Answer: TypeAlias = tuple[UUID, str, bool]


@dataclass(frozen=True, slots=True)
class Batch:
    """Jobs to store together. `entries` may be made while they are stored, unless one is keyed."""

    count: int
    job_types: frozenset[str]
    is_keyed: bool
    entries: Iterable[Entry]


class TypeDefaults(NamedTuple):
    """What a job type says of its new jobs."""

    priority: int = 0
    max_retries: int = DEFAULT_MAX_RETRIES
    # An analysis or an approval comes first.
    is_gated: bool = False
    is_aged: bool = False
    two_person: bool = False


_NONE: Final = TypeDefaults()


class Opening(NamedTuple):
    """What a batch starts from: the clock, numbers, and what its job types say."""

    now: str
    # None: the role or the driver cannot COPY.
    seqs: list[int] | None
    types: dict[str, TypeDefaults]
    # Somebody watches all jobs.
    is_watched: bool = False

    def demands(self, job: NewJob) -> TypeDefaults:
        return self.types.get(job.job_type, _NONE)


def open_batch(batch: Batch, *, can_copy: bool = True) -> Statement[Opening]:
    """Numbers for the jobs, the clock, and the defaults of their types."""

    def decode(rows: list[Row]) -> Opening:
        now, seqs, types, is_watched = rows[0]
        said = json.loads(types or "{}").items()
        return Opening(now, seqs, {name: TypeDefaults(*one) for name, one in said}, is_watched)

    return Statement(
        "jobs/open_batch",
        decode,
        {"count": batch.count, "job_types": list(batch.job_types), "can_copy": can_copy},
    )


async def submit_batch(conn: AsyncConn, batch: Batch, settings: Settings) -> list[Answer]:
    """Stores jobs in a transaction of our own: all of them or none."""
    async with bounded_transaction(conn, settings):
        return await store_batch(borrow(conn), batch)


async def store_batch(conn: CallerConnection, batch: Batch) -> list[Answer]:
    """Stores jobs in the transaction of the connection; answers in the order given.

    When making an entry fails, that error is raised and the transaction is to be rolled back.
    """
    opening = await conn.run(open_batch(batch, can_copy=conn.can_copy))
    if opening.seqs is None:
        return await _call(conn, list(batch.entries), opening)
    if not batch.is_keyed:
        return await _store(conn, batch.entries, opening, opening.seqs)
    entries = list(batch.entries)
    for i, (_, _, like) in enumerate(entries):
        if like.created_by is None and opening.demands(like).two_person:
            raise InvalidInput(f"jobs[{i}].created_by", NEEDS_SUBMITTER)
    holders = await _take_keys(conn, entries, opening.seqs)
    chosen = [i for i in range(len(entries)) if i not in holders]
    stored: list[Answer] = []
    if chosen:
        seqs = [opening.seqs[i] for i in chosen]
        stored = await _store(conn, [entries[i] for i in chosen], opening, seqs)
    # A repeated key was answered before its first job was placed: it stands where that one does.
    placed = {job_id: status for job_id, status, _ in stored}
    holders = {i: (who, placed.get(who, status), True) for i, (who, status, _) in holders.items()}
    made = holders | dict(zip(chosen, stored, strict=True))
    return [made[i] for i in range(len(entries))]


async def _take_keys(
    conn: CallerConnection, entries: Sequence[Entry], seqs: Sequence[int]
) -> dict[int, Answer]:
    """Takes the unique keys; answers, for each job that missed its own, the one that has it."""
    first: dict[Key, int] = {}
    repeated: dict[int, Key] = {}
    for i, (_, _, job) in enumerate(entries):
        if job.unique_key is not None:
            key = (job.workspace, job.job_type, job.unique_key)
            if first.setdefault(key, i) != i:
                repeated[i] = key
    holders: dict[int, Answer] = {}
    missing = dict(first)
    while missing:
        wanted = list(missing.values())
        taken = await conn.run(
            jobs.reserve_keys([entries[i][2] for i in wanted], [seqs[i] for i in wanted])
        )
        missing = {key: i for key, i in missing.items() if seqs[i] not in taken}
        if missing:
            found = await conn.run(_find_keys([entries[i][2] for i in missing.values()]))
            holders |= {i: found[key] for key, i in missing.items() if key in found}
            # A holder that ended in between has left its key free again.
            missing = {key: i for key, i in missing.items() if key not in found}
    for i, key in repeated.items():
        mine = (entries[first[key]][0], _APPROVED, True)
        holders[i] = holders.get(first[key], mine)
    return holders


def _find_keys(new: Sequence[NewJob]) -> Statement[dict[Key, Answer]]:
    def decode(rows: list[Row]) -> dict[Key, Answer]:
        return {(r[0], r[1], r[2]): (r[3], r[4], True) for r in rows}

    return Statement("jobs/find_keys", decode, jobs.find_keys(new).params)


class _Shape:
    """What laneway.submit would decide for all entries like one job, and its columns."""

    __slots__ = (
        "due", "head", "is_aged", "is_gated", "job", "max_retries", "priority", "problem", "run_at",
        "tail", "waiting",
    )  # fmt: skip

    def __init__(self, job: NewJob, opening: Opening) -> None:
        its = opening.demands(job)
        self.problem: tuple[str, str] | None = None
        if its.two_person and job.created_by is None:
            self.problem = "created_by", NEEDS_SUBMITTER
        self.is_gated = its.is_gated or job.needs is not None
        self.is_aged = its.is_aged or job.max_age is not None
        self.job = job
        self.priority = its.priority if job.priority is None else job.priority
        self.max_retries = its.max_retries if job.max_retries is None else job.max_retries
        self.run_at: str | None = None
        self.due: str | None = None
        if job.run_at is not None or job.delay is not None:
            clock = datetime.fromisoformat(opening.now)
            at = job.run_at or clock + timedelta(seconds=job.delay or 0)
            if not _EARLIEST <= at - clock <= _LATEST:
                self.problem = "run_at", "within 100 years of now"
                at = clock
            self.run_at = at.astimezone(UTC).isoformat()
            self.due = self.run_at if at > clock else None
        job_type = escape(job.job_type)
        tail = (
            self.priority, self.max_retries, self.run_at, job.unique_key, array_literal(job.tags),
            opening.now, job.created_by, job.traceparent, job.concurrency_key,
        )  # fmt: skip
        self.head = f"\t{job_type}\t{escape(job.workspace)}\t"
        self.tail = "\t" + "\t".join(map(column, tail)) + "\n"
        self.waiting = f"\t{job_type}\t{-self.priority}\t{self.due or opening.now}\n"


class _Writer:
    """The rows of a batch, made from its entries one after the other."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._shapes: dict[int, _Shape] = {}
        self.answers: list[Answer] = []
        self.ready: list[str] = []
        self.delayed: list[str] = []
        self.gated: list[int] = []
        self.needs: list[str | None] = []
        self.aged: list[int] = []
        self.max_ages: list[float | None] = []
        self.problem: InvalidInput | None = None

    def shape(self, like: NewJob) -> _Shape:
        # By identity, which stays its own as long as the shape holds on to it.
        shape = self._shapes.get(id(like))
        if shape is None:
            shape = self._shapes[id(like)] = _Shape(like, self._opening)
        return shape

    def jobs(self, entries: Iterable[Entry], seqs: Sequence[int]) -> Iterator[bytes]:
        """The data of a COPY into jobs; the lines for ready and delayed are kept meanwhile."""
        lines: list[str] = []
        shape = self.shape
        try:
            for seq, (job_id, payload, like) in zip(seqs, entries, strict=True):
                its = shape(like)
                if its.problem is not None:
                    field, rule = its.problem
                    raise InvalidInput(f"jobs[{len(self.answers)}].{field}", rule)
                lines.append(f"{seq}\t{job_id.int:032x}{its.head}{escape(payload)}{its.tail}")
                if its.is_gated:
                    self.gated.append(seq)
                    self.needs.append(like.needs)
                else:
                    (self.ready if its.due is None else self.delayed).append(f"{seq}{its.waiting}")
                if its.is_aged:
                    self.aged.append(seq)
                    self.max_ages.append(like.max_age)
                self.answers.append((job_id, _APPROVED, False))
                if len(lines) == _PART:
                    yield "".join(lines).encode()
                    lines.clear()
        except InvalidInput as problem:
            # The COPY is ended in order: what a caller got wrong is no error to the server.
            self.problem = problem
        yield "".join(lines).encode()


async def _store(
    conn: CallerConnection, entries: Iterable[Entry], opening: Opening, seqs: Sequence[int]
) -> list[Answer]:
    """Stores jobs by COPY under these numbers."""
    writer = _Writer(opening)
    await conn.copy(copytext.JOBS, writer.jobs(entries, seqs))
    if writer.problem is not None:
        raise writer.problem
    for text, lines in ((copytext.READY, writer.ready), (copytext.DELAYED, writer.delayed)):
        if lines:
            await conn.copy(text, ["".join(lines).encode()])
    placed = await _placed(conn, writer, opening, seqs)
    if opening.is_watched:
        await conn.run(events.emit(seqs, "submitted"))
    return placed


async def _placed(
    conn: CallerConnection, writer: _Writer, opening: Opening, seqs: Sequence[int]
) -> list[Answer]:
    """What no COPY can decide: who waits for an analysis or approval, and who may grow how old."""
    if not writer.gated and not writer.aged:
        return writer.answers
    placed = await conn.run(
        Statement(
            "jobs/place_batch",
            lambda rows: {row[0]: row[1] for row in rows},
            {
                "gated": writer.gated,
                "needs": writer.needs,
                "aged": writer.aged,
                "max_ages": writer.max_ages,
                "now": opening.now,
            },
        )
    )
    return [
        (job_id, placed.get(seq, status), is_duplicate)
        for seq, (job_id, status, is_duplicate) in zip(seqs, writer.answers, strict=False)
    ]


async def _call(conn: CallerConnection, entries: Sequence[Entry], opening: Opening) -> list[Answer]:
    """Stores jobs by one call. Texts, because lists of a thousand cost every driver more."""
    kinds: dict[int, int] = {}
    told: list[dict[str, object]] = []
    for i, (_, _, like) in enumerate(entries):
        if id(like) not in kinds:
            problem = _Shape(like, opening).problem
            if problem is not None:
                raise InvalidInput(f"jobs[{i}].{problem[0]}", problem[1])
            kinds[id(like)] = len(told)
            told.append(_kind(like))
    return await conn.run(
        Statement(
            "jobs/submit_batch",
            lambda rows: [(row[0], row[1], row[2]) for row in rows],
            {
                "ids": ",".join([entry[0].hex for entry in entries]),
                "payloads": f"[{','.join([entry[1] for entry in entries])}]",
                "kind_of": ",".join([str(kinds[id(entry[2])]) for entry in entries]),
                "kinds": json.dumps(told),
            },
        )
    )


def _kind(like: NewJob) -> dict[str, object]:
    told = {name: getattr(like, name) for name in _SAID}
    told["run_at"] = like.run_at and like.run_at.isoformat()
    told["tags"] = list(like.tags) or None
    return {name: value for name, value in told.items() if value is not None}
