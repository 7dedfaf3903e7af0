"""A walk over everything that can happen to jobs, held against a model and the transition table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from laneway.domain.approval import Analysis, Approval, analysis_of
from laneway.domain.claim import Claim
from laneway.domain.states import ANALYSIS_TRIES, TERMINAL, Status, Verb, next_statuses
from laneway.store import jobs, lanes, leases
from tests.store import approvals
from tests.support.store_client import PLACES, StoreClient, error

PLAIN = ("a", "b")
# With an analysis and an approval, with an approval, with an analysis and a threshold.
GATED = {"c": Approval(), "d": Approval(), "e": Approval(below_cost=5, currency="EUR")}
ANALYSED = ("c", "e")
TYPES = (*PLAIN, *GATED)
SLOTS_OF_ANALYSES = 4
WORKERS_VERDICTS = {
    "finish": Verb.FINISH,
    "fail": Verb.FAIL,
    "giveup": Verb.FAIL,
    "snooze": Verb.SNOOZE,
    "release": Verb.RELEASE,
    "cancel": Verb.CANCEL,
    "analyzed": Verb.FAIL,  # invalid for a run
}
ANALYSIS_VERDICTS = {
    **WORKERS_VERDICTS,
    "analyzed": Verb.ANALYSIS_DONE,
    "fail": Verb.ANALYSIS_FAILED,
    "giveup": Verb.ANALYSIS_FAILED,
    "finish": Verb.ANALYSIS_FAILED,  # invalid for an analysis
}
CHARGED = ("fail", "lost", "stalled")
FREE = ("release", "snooze", "spared")
# From the next uncharged attempt on, none comes back at once.
AT_ONCE = 10


@dataclass
class Model:
    """The expected state of one job."""

    seq: int
    job_type: str
    key: str | None
    status: Status = Status.APPROVED
    attempt: int = 0
    retries: int = 0
    max_retries: int = 1
    priority: int = 0
    cancel: bool = False
    delayed: bool = False
    later: bool = False
    is_leased: bool = False
    is_cheap: bool = False
    is_analysed: bool = False
    # An approval is in force; it is of something else if the job was changed since.
    is_agreed: bool = False
    is_changed: bool = False

    @property
    def is_pending(self) -> bool:
        return self.status is Status.PENDING

    def submitted(self) -> Status:
        if self.job_type in ANALYSED:
            return Status.PENDING
        return Status.AWAITING_APPROVAL if self.job_type in GATED else Status.APPROVED

    def settled(self, kind: str) -> Status:
        tries = ANALYSIS_TRIES - 1 if self.is_pending else self.max_retries
        if self.cancel or kind == "cancel":
            return Status.CANCELLED
        if kind == "finish" and not self.is_pending:
            return Status.COMPLETED
        if kind == "analyzed" and self.is_pending:
            is_through = self.job_type == "e" and self.is_cheap
            return Status.APPROVED if is_through else Status.AWAITING_APPROVAL
        if kind in FREE or (kind in CHARGED and self.retries < tries):
            return Status.PENDING if self.is_pending else Status.APPROVED
        return Status.FAILED

    def retried(self) -> Status:
        is_through = self.is_agreed and not self.is_changed
        is_unknown = not self.is_analysed or self.is_agreed
        if self.job_type in ANALYSED and is_unknown and not is_through:
            return Status.PENDING
        if is_through or self.job_type in PLAIN:
            return Status.APPROVED
        return Status.AWAITING_APPROVAL


class Walk(RuleBasedStateMachine):
    """Each step does one thing to the database and to the model."""

    db: ClassVar[StoreClient]
    seqs = Bundle("seqs")

    def __init__(self) -> None:
        super().__init__()
        self.db.begin()
        for name, approval in GATED.items():
            approvals.publish(self.db, name, approval, analysis=name in ANALYSED)
        self.jobs: dict[int, Model] = {}
        self.seen: dict[int, int] = {}

    def teardown(self) -> None:
        self.db.rollback()

    # -- steps --------------------------------------------------------------------------------

    @rule(
        target=seqs,
        job_type=st.sampled_from(TYPES),
        priority=st.integers(-1, 1),
        key=st.sampled_from([None, "k"]),
        delay=st.sampled_from([None, 3600.0]),
        max_retries=st.integers(0, 2),
        cheap=st.booleans(),
    )
    def submit(
        self,
        job_type: str,
        priority: int,
        key: str | None,
        delay: float | None,
        max_retries: int,
        cheap: bool,
    ) -> int:
        holder = self._holder(job_type, key)
        seq = self.db.submit(
            job_type, priority=priority, unique_key=key, delay=delay, max_retries=max_retries
        )
        if holder is not None:
            assert seq == holder.seq
            return seq
        assert seq not in self.jobs
        job = self.jobs[seq] = Model(
            seq, job_type, key, max_retries=max_retries, priority=priority, later=bool(delay),
            is_cheap=cheap,
        )  # fmt: skip
        job.status = job.submitted()
        job.delayed = job.later and job.status is Status.APPROVED
        assert job.status in next_statuses(None, Verb.SUBMIT)
        return seq

    @rule(room=st.integers(1, 3))
    def analyze(self, room: int) -> None:
        due = sorted(
            (j for j in self.jobs.values() if j.is_pending and not j.is_leased and not j.delayed),
            key=lambda job: (-job.priority, job.seq),
        )
        free = SLOTS_OF_ANALYSES - sum(job.is_pending and job.is_leased for job in self._leased())
        claims = self.db.claimed(room, [analysis_of(t) for t in ANALYSED], lane="analysis")
        assert [c.seq for c in claims] == [job.seq for job in due[: min(room, free)]]
        for claim in claims:
            job = self.jobs[claim.seq]
            self._move(job, Verb.CLAIM, Status.PENDING)
            job.attempt, job.is_leased = job.attempt + 1, True
            assert claim.attempt == job.attempt

    @rule(room=st.integers(1, 3), types=st.sampled_from([("a",), ("b",), tuple(GATED), TYPES]))
    def claim(self, room: int, types: tuple[str, ...]) -> None:
        due = sorted(
            (
                job
                for job in self.jobs.values()
                if job.status is Status.APPROVED and not job.delayed and job.job_type in types
            ),
            key=lambda job: (-job.priority, job.seq),
        )
        found = self.db.claim(room, types).assignments
        assert [one.claim.seq for one in found] == [job.seq for job in due[:room]]
        for one in found:
            job = self.jobs[one.claim.seq]
            self._move(job, Verb.CLAIM, Status.RUNNING)
            job.attempt, job.is_leased = job.attempt + 1, True
            assert one.claim.attempt == job.attempt
            assert one.changed_since_approval == job.is_changed
            if one.changed_since_approval:
                self.db.settle(one.claim, "giveup", error=error("NotAsApproved"))
                self._end(job, Verb.FAIL, "giveup")

    @rule(seq=seqs, kind=st.sampled_from(sorted(WORKERS_VERDICTS)), late=st.booleans())
    def settle(self, seq: int, kind: str, late: bool) -> None:
        job = self.jobs.get(seq)
        if job is None:
            return
        attempt = job.attempt - late
        analysis = Analysis(cost=1 if job.is_cheap else 9, currency="EUR")
        answer = self.db.settle(
            Claim(seq, self.db.id_of(seq), attempt),
            kind,
            result=json.dumps(analysis.to_dict()),
            error=error(),
            delay_s=self._delay(kind),
        )
        if late or not job.is_leased:
            # Nothing may change; the result may be that of the first time.
            assert answer is not None
            return
        verdicts = ANALYSIS_VERDICTS if job.is_pending else WORKERS_VERDICTS
        self._end(job, verdicts[kind], kind)
        if answer is not None:
            assert answer.status == job.status
            assert (answer.answer == "cancel_requested") == job.cancel

    @rule(kind=st.sampled_from(["lost", "stalled"]))
    def reclaim(self, kind: str) -> None:
        # An analysis has no progress time.
        running = [job for job in self._leased() if kind == "lost" or not job.is_pending]
        column, back = ("lease_until", "1 s") if kind == "lost" else ("claimed_at", "1 h")
        self.db.do(
            "insert into laneway.job_types (name, stale) select unnest(%s::text[]), 'progress'"
            " on conflict (name) do update set stale = 'progress'",
            list(TYPES),
        )
        self.db.do(f"update laneway.lease set {column} = clock_timestamp() - %s::interval", back)
        # As if this was another worker than the last time.
        self.db.do("delete from laneway.suspects")
        # One lane after the other.
        passes = [self.db.run(leases.run_watchdog(self.db.worker, 10)) for _ in range(2)]
        assert sum(each.reclaimed for each in passes) == len(running)
        self.db.do("update laneway.delayed set run_at = run_at + interval '1 h'")
        for job in running:
            verb = Verb.ANALYSIS_FAILED if job.is_pending else Verb.LAPSE
            is_spared = kind == "lost" and len(running) > 1
            self._end(job, verb, "spared" if is_spared else kind, delayed=True)

    @rule(seq=seqs)
    def cancel(self, seq: int) -> None:
        job = self.jobs.get(seq)
        if job is None:
            return
        assert self.db.cancel(seq).found_in == job.status
        if job.is_leased:
            self._move(job, Verb.REQUEST_CANCEL, job.status)
            job.cancel = True
        elif job.status not in TERMINAL:
            self._move(job, Verb.CANCEL, Status.CANCELLED)

    @rule(seq=seqs, is_yes=st.booleans())
    def decide(self, seq: int, is_yes: bool) -> None:
        job = self.jobs.get(seq)
        if job is None:
            return
        verb = approvals.approve if is_yes else approvals.reject
        assert verb(self.db, seq)[:2] == (job.status, None)
        if job.status is not Status.AWAITING_APPROVAL:
            return
        if is_yes:
            self._move(job, Verb.APPROVE, Status.APPROVED)
            job.is_agreed, job.delayed = True, job.later
        else:
            self._move(job, Verb.REJECT, Status.CANCELLED)

    @rule()
    def expire(self) -> None:
        self.db.do("select laneway.expire_approvals(99, clock_timestamp() + interval '2 d')")
        for job in self.jobs.values():
            if job.status is Status.AWAITING_APPROVAL:
                self._move(job, Verb.EXPIRE, Status.CANCELLED)

    @rule(seq=seqs)
    def change(self, seq: int) -> None:
        job = self.jobs.get(seq)
        if job is None:
            return
        self.db.do(
            "update laneway.jobs set payload = jsonb_build_object('new', random()) where seq = %s",
            seq,
        )
        job.is_changed = job.is_agreed

    @rule(seq=seqs)
    def retry(self, seq: int) -> None:
        job = self.jobs.get(seq)
        if job is None:
            return
        found = self.db.retry(seq).found_in
        if job.status not in (Status.FAILED, Status.CANCELLED):
            assert found == job.status
        elif self._holder(job.job_type, job.key) is not None:
            assert found == "duplicate"
        else:
            assert found == job.status
            after = job.retried()
            self._move(job, Verb.RETRY, after)
            job.retries, job.cancel = 0, False
            job.delayed = job.later and after is Status.APPROVED
            if after is Status.AWAITING_APPROVAL:
                job.is_agreed = job.is_changed = False

    @rule(seq=seqs, priority=st.integers(-2, 2))
    def reprioritize(self, seq: int, priority: int) -> None:
        job = self.jobs.get(seq)
        if job is None:
            return
        met = self.db.run(jobs.reprioritize(self.db.id_of(seq), priority))
        assert met.found_in == job.status
        if job.status is not Status.RUNNING and job.status not in TERMINAL:
            job.priority = priority

    @rule()
    def promote(self) -> None:
        self.db.do("update laneway.delayed set run_at = clock_timestamp()")
        self.db.run(lanes.peek(list(TYPES)))
        for job in self.jobs.values():
            job.delayed = False

    @rule(seq=seqs)
    def delete(self, seq: int) -> None:
        job = self.jobs.get(seq)
        if job is None:
            return
        gone = self.db.run(jobs.delete(self.db.id_of(seq)))
        assert (gone is not None) == (job.status in TERMINAL)
        if gone is not None:
            del self.jobs[seq]
            del self.seen[seq]

    @precondition(lambda self: self.jobs)
    @rule()
    def bury(self) -> None:
        running = sorted(job.seq for job in self._leased())
        culprit = running[0] if running else -1
        assert self.db.run(
            leases.fail_worker(self.db.worker, "worker lost", hung=True, culprit=culprit)
        ) == len(running)
        self.db.do("update laneway.delayed set run_at = run_at + interval '1 h'")
        for seq in running:
            if seq == culprit:
                verb = Verb.ANALYSIS_FAILED if self.jobs[seq].is_pending else Verb.LAPSE
                self._end(self.jobs[seq], verb, "lost", delayed=True)
            else:
                self._end(self.jobs[seq], Verb.RELEASE, "release")

    # -- the model ----------------------------------------------------------------------------

    def _holder(self, job_type: str, key: str | None) -> Model | None:
        for job in self.jobs.values():
            if key and (job.job_type, job.key) == (job_type, key) and job.status not in TERMINAL:
                return job
        return None

    def _leased(self) -> list[Model]:
        return [job for job in self.jobs.values() if job.is_leased]

    @staticmethod
    def _delay(kind: str) -> float | None:
        return 3600.0 if kind in ("fail", "snooze") else None

    def _move(self, job: Model, verb: Verb, after: Status) -> None:
        assert after in next_statuses(job.status, verb), f"{job.status} -{verb}-> {after}"
        job.status = after

    def _end(self, job: Model, verb: Verb, kind: str, *, delayed: bool | None = None) -> None:
        before, after = job.status, job.settled(kind)
        self._move(job, verb, after)
        job.is_leased = False
        if kind == "analyzed" and before is Status.PENDING and after is not Status.CANCELLED:
            job.is_analysed, job.retries = True, 0
            job.is_agreed, job.is_changed = after is Status.APPROVED, False
            job.delayed = job.later and after is Status.APPROVED
        elif after in (Status.APPROVED, Status.PENDING):
            job.retries += kind in CHARGED
            is_slowed = kind in FREE and job.attempt - job.retries > AT_ONCE
            job.delayed = is_slowed or (bool(self._delay(kind)) if delayed is None else delayed)

    # -- what must hold after every step --------------------------------------------------------

    @invariant()
    def the_database_is_the_model(self) -> None:
        rows = self.db.rows(
            "select seq, status, attempt, retries, priority, cancel_requested_at is not null"
            " from laneway.jobs_view order by seq"
        )
        found = {row[0]: row[1:] for row in rows}
        assert found.keys() == self.jobs.keys()
        for seq, (status, attempt, retries, priority, cancelled) in found.items():
            job = self.jobs[seq]
            assert (status, attempt, retries, priority) == (
                job.status,
                job.attempt,
                job.retries,
                job.priority,
            )
            if job.is_leased:
                assert cancelled == job.cancel
            assert attempt >= self.seen.get(seq, 0), "an attempt number went back"
            self.seen[seq] = attempt

    @invariant()
    def every_job_is_in_exactly_one_place(self) -> None:
        union = " union all ".join(f"select seq from laneway.{place}" for place in PLACES)
        rows = self.db.rows(f"select seq, count(*) from ({union}) p group by 1")
        assert dict(rows) == dict.fromkeys(self.jobs, 1)

    @invariant()
    def slots_and_keys_belong_to_live_jobs(self) -> None:
        assert self.db.slots_agree()
        held = {row[0] for row in self.db.rows("select seq from laneway.job_keys")}
        assert held == {
            job.seq for job in self.jobs.values() if job.key and job.status not in TERMINAL
        }

    @invariant()
    def every_attempt_has_one_record(self) -> None:
        rows: list[tuple[Any, ...]] = self.db.rows(
            "select seq, attempt from laneway.attempts"
            " union all select seq, attempt from laneway.lease"
            " union all select seq, attempt from laneway.outcome where claimed_at is not null"
        )
        wanted = [(job.seq, n) for job in self.jobs.values() for n in range(1, job.attempt + 1)]
        assert sorted(rows) == sorted(wanted)


@pytest.fixture
def walker(db: StoreClient) -> type[Walk]:
    Walk.db = db
    return Walk


def test_every_walk_stays_within_the_transition_table(walker: type[Walk]) -> None:
    run_state_machine_as_test(
        walker,
        settings=settings(
            max_examples=150,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
