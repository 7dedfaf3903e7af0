"""Many new jobs in one transaction: by COPY where driver and role can, else by one call.

The call is `laneway.submit_batch`: for roles without write access to the tables, for jobs with
unique_for or unique_by, and for jobs of flows or after others. It also decides which jobs need an
approval.
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
from laneway.domain.job import NewJob
from laneway.domain.retry import DEFAULT_MAX_RETRIES
from laneway.domain.states import Status
from laneway.errors import InvalidInput
from laneway.store import copytext, events, jobs, unique_keys
from laneway.store.bounds import bounded_transaction
from laneway.store.caller_connection import CallerConnection, borrow
from laneway.store.copytext import array_literal, column, escape
from laneway.store.database import AsyncConn
from laneway.store.statement import Row, Statement

Key = tuple[str, str, str]

# Small enough that the server stores one chunk while the next is built.
_CHUNK: Final = 250
# The same bounds as in laneway.submit.
_EARLIEST: Final = timedelta(days=-36_524)
_LATEST: Final = timedelta(days=36_889)
_APPROVED: Final = Status.APPROVED.value


# One job of a batch: its id, its payload, and a template that many jobs may share. Plain tuples,
# because a thousand of anything else cost as much as storing them.
Entry: TypeAlias = tuple[UUID, str, NewJob]
# Id, status and whether it is a duplicate, as in jobs.SubmitResult.
Answer: TypeAlias = tuple[UUID, str, bool]


@dataclass(frozen=True, slots=True)
class Batch:
    """Jobs to store together. `entries` may be a generator unless a job has a unique key."""

    count: int
    job_types: frozenset[str]
    is_keyed: bool
    entries: Iterable[Entry]
    # A job has unique_for or unique_by.
    is_unique: bool = False
    # A job comes after others.
    is_linked: bool = False


class TypeDefaults(NamedTuple):
    """Defaults and rules of a job type for its new jobs."""

    priority: int = 0
    max_retries: int = DEFAULT_MAX_RETRIES
    # Needs an analysis or an approval first.
    is_gated: bool = False
    is_aged: bool = False
    two_person: bool = False
    # Unique by its arguments.
    is_unique: bool = False


_UNPUBLISHED: Final = TypeDefaults()


class Opening(NamedTuple):
    """The starting point of a batch: the clock, sequence numbers and job type defaults."""

    now: str
    # None: the role or the driver cannot use COPY.
    seqs: list[int] | None
    types: dict[str, TypeDefaults]
    # A client watches all jobs.
    is_watched: bool = False

    def defaults_of(self, job: NewJob) -> TypeDefaults:
        return self.types.get(job.job_type, _UNPUBLISHED)


def open_batch(batch: Batch, *, can_copy: bool = True) -> Statement[Opening]:
    """Reads sequence numbers, the clock and the defaults of the job types."""

    def decode(rows: list[Row]) -> Opening:
        now, seqs, types, is_watched = rows[0]
        defaults = {
            name: TypeDefaults(*values) for name, values in json.loads(types or "{}").items()
        }
        return Opening(now, seqs, defaults, is_watched)

    return Statement(
        "jobs/open_batch",
        decode,
        {"count": batch.count, "job_types": list(batch.job_types), "can_copy": can_copy},
    )


async def submit_batch(conn: AsyncConn, batch: Batch, settings: Settings) -> list[Answer]:
    """Stores jobs in a new transaction: all of them or none."""
    async with bounded_transaction(conn, settings):
        return await store_batch(borrow(conn), batch)


async def store_batch(conn: CallerConnection, batch: Batch) -> list[Answer]:
    """Stores jobs in the transaction of the connection; results in the order given.

    When building an entry fails, that error is raised and the caller must roll back.
    """
    opening = await conn.run(open_batch(batch, can_copy=conn.can_copy))
    is_unique = batch.is_unique or any(one.is_unique for one in opening.types.values())
    if opening.seqs is None or is_unique or batch.is_linked:
        # Only the database knows the key of arguments, and whether a parent has ended.
        entries = list(batch.entries)
        check_entries(entries, opening)
        return await call_batch(conn, entries)
    if not batch.is_keyed:
        return await _store(conn, batch.entries, opening, opening.seqs)
    entries = list(batch.entries)
    for i, (_, _, like) in enumerate(entries):
        if like.created_by is None and opening.defaults_of(like).two_person:
            raise InvalidInput(f"jobs[{i}].created_by", NEEDS_SUBMITTER)
    holders = await _take_keys(conn, entries, opening.seqs)
    chosen = [i for i in range(len(entries)) if i not in holders]
    stored: list[Answer] = []
    if chosen:
        seqs = [opening.seqs[i] for i in chosen]
        stored = await _store(conn, [entries[i] for i in chosen], opening, seqs)
    # A repeated key got its answer before its first job was placed: use the status of that job.
    placed = {job_id: status for job_id, status, _ in stored}
    holders = {
        i: (job_id, placed.get(job_id, status), True) for i, (job_id, status, _) in holders.items()
    }
    answers = holders | dict(zip(chosen, stored, strict=True))
    return [answers[i] for i in range(len(entries))]


async def _take_keys(
    conn: CallerConnection, entries: Sequence[Entry], seqs: Sequence[int]
) -> dict[int, Answer]:
    """Takes the unique keys; returns the current holder for each job that did not get its key."""
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
            unique_keys.reserve([entries[i][2] for i in wanted], [seqs[i] for i in wanted])
        )
        missing = {key: i for key, i in missing.items() if seqs[i] not in taken}
        if missing:
            found = await conn.run(unique_keys.find([entries[i][2] for i in missing.values()]))
            holders |= {i: found[key] for key, i in missing.items() if key in found}
            # A holder that ended in between has freed its key.
            missing = {key: i for key, i in missing.items() if key not in found}
    for i, key in repeated.items():
        in_batch = (entries[first[key]][0], _APPROVED, True)
        holders[i] = holders.get(first[key], in_batch)
    return holders


class _Shape:
    """The columns shared by all entries of one template, as laneway.submit would store them."""

    __slots__ = (
        "due", "head", "is_aged", "is_gated", "job", "max_retries", "priority", "problem", "run_at",
        "tail", "waiting",
    )  # fmt: skip

    def __init__(self, job: NewJob, opening: Opening) -> None:
        defaults = opening.defaults_of(job)
        self.problem: tuple[str, str] | None = None
        if defaults.two_person and job.created_by is None:
            self.problem = "created_by", NEEDS_SUBMITTER
        self.is_gated = defaults.is_gated or job.needs is not None
        self.is_aged = defaults.is_aged or job.max_age is not None
        self.job = job
        self.priority = defaults.priority if job.priority is None else job.priority
        self.max_retries = defaults.max_retries if job.max_retries is None else job.max_retries
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
    """Builds the rows of a batch from its entries, one by one."""

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
        # By identity, which is unique because the shape keeps the template alive.
        shape = self._shapes.get(id(like))
        if shape is None:
            shape = self._shapes[id(like)] = _Shape(like, self._opening)
        return shape

    def jobs(self, entries: Iterable[Entry], seqs: Sequence[int]) -> Iterator[bytes]:
        """Yields the data of a COPY into jobs; collects the lines for ready and delayed."""
        lines: list[str] = []
        shape = self.shape
        try:
            for seq, (job_id, payload, like) in zip(seqs, entries, strict=True):
                row = shape(like)
                if row.problem is not None:
                    field, rule = row.problem
                    raise InvalidInput(f"jobs[{len(self.answers)}].{field}", rule)
                lines.append(f"{seq}\t{job_id.int:032x}{row.head}{escape(payload)}{row.tail}")
                if row.is_gated:
                    self.gated.append(seq)
                    self.needs.append(like.needs)
                else:
                    (self.ready if row.due is None else self.delayed).append(f"{seq}{row.waiting}")
                if row.is_aged:
                    self.aged.append(seq)
                    self.max_ages.append(like.max_age)
                self.answers.append((job_id, _APPROVED, False))
                if len(lines) == _CHUNK:
                    yield "".join(lines).encode()
                    lines.clear()
        except InvalidInput as problem:
            # End the COPY normally: invalid input of the caller is not an error of the server.
            self.problem = problem
        yield "".join(lines).encode()


async def _store(
    conn: CallerConnection, entries: Iterable[Entry], opening: Opening, seqs: Sequence[int]
) -> list[Answer]:
    """Stores jobs by COPY under these sequence numbers."""
    writer = _Writer(opening)
    await conn.copy(copytext.JOBS, writer.jobs(entries, seqs))
    if writer.problem is not None:
        raise writer.problem
    for text, lines in ((copytext.READY, writer.ready), (copytext.DELAYED, writer.delayed)):
        if lines:
            await conn.copy(text, ["".join(lines).encode()])
    placed = await _place(conn, writer, opening, seqs)
    if opening.is_watched:
        await conn.run(events.emit(seqs, "submitted"))
    return placed


async def _place(
    conn: CallerConnection, writer: _Writer, opening: Opening, seqs: Sequence[int]
) -> list[Answer]:
    """Places jobs that need an analysis or approval, and stores deadlines, as COPY cannot."""
    if not writer.gated and not writer.aged:
        return writer.answers
    statuses = await conn.run(
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
        (job_id, statuses.get(seq, status), is_duplicate)
        for seq, (job_id, status, is_duplicate) in zip(seqs, writer.answers, strict=False)
    ]


def check_entries(entries: Sequence[Entry], opening: Opening) -> None:
    """Refuse a job that breaks a rule which depends on the clock or on its published type."""
    checked: set[int] = set()
    for i, (_, _, like) in enumerate(entries):
        if id(like) not in checked:
            checked.add(id(like))
            problem = _Shape(like, opening).problem
            if problem is not None:
                raise InvalidInput(f"jobs[{i}].{problem[0]}", problem[1])


async def call_batch(
    conn: CallerConnection, entries: Sequence[Entry], flow: UUID | None = None
) -> list[Answer]:
    """Stores jobs by one call. Sends texts, because lists of a thousand cost every driver more."""
    kind_of: dict[int, int] = {}
    # By their text: jobs that were given equal options have separate templates.
    kinds: dict[str, int] = {}
    for _, _, like in entries:
        if id(like) not in kind_of:
            kind_of[id(like)] = kinds.setdefault(json.dumps(jobs.json_settings(like)), len(kinds))
    return await conn.run(
        Statement(
            "jobs/submit_batch",
            lambda rows: [(row[0], row[1], row[2]) for row in rows],
            {
                "ids": ",".join([entry[0].hex for entry in entries]),
                "payloads": f"[{','.join([entry[1] for entry in entries])}]",
                "kind_of": ",".join([str(kind_of[id(entry[2])]) for entry in entries]),
                "kinds": f"[{','.join(kinds)}]",
                "after": _links(entries),
                "flow": flow,
            },
        )
    )


def _links(entries: Sequence[Entry]) -> str | None:
    """The parents of each job, and its name in its flow, as JSON; None without any."""
    links = [_link(like) for _, _, like in entries]
    return json.dumps(links) if any(links) else None


def _link(job: NewJob) -> dict[str, object] | None:
    if not job.after and job.after_failure is None and job.name is None:
        return None
    link: dict[str, object] = {"after": [str(parent) for parent in job.after]}
    for name in ("after_failure", "name"):
        if (value := getattr(job, name)) is not None:
            link[name] = value
    return link
