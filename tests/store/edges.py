"""Jobs with edges, for tests: submit, end and look at them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID, uuid4

from laneway.domain.claim import Claim
from laneway.store import edges, leases
from laneway.store.leases import Verdict, WriteResult
from tests.support.store_client import StoreClient, error

Link = dict[str, Any] | None


class Edges:
    """One client of the database, with the verbs of flows."""

    def __init__(self, db: StoreClient) -> None:
        self.db = db

    def submit(self, job_type: str = "t", *, after: Iterable[int] = (), **more: Any) -> int:
        """Submits a job after these; returns its number."""
        given = {"after": [self.db.id_of(one) for one in after] or None, **more}
        named = "".join(f", {name} => %s" for name in given)
        values = [json.dumps(v) if isinstance(v, dict) else v for v in given.values()]
        job_id = self.db.one(
            f"select job_id from laneway.submit(job_type => %s{named})", job_type, *values
        )
        return self.db.seq_of(job_id)

    def submit_batch(
        self, links: Sequence[Link], *, flow: UUID | None = None, **kind: Any
    ) -> list[int]:
        """Submits a job per link; numbers in `after` are places in the batch, from 0."""
        ids = [uuid4() for _ in links]
        texts = [
            None
            if link is None
            else {**link, "after": [str(self._id(ids, one)) for one in link.get("after", ())]}
            for link in links
        ]
        self.db.rows(
            "select * from laneway.submit_batch(%s, %s::jsonb, %s, %s::jsonb,"
            " p_after => %s::jsonb, p_flow => %s)",
            ids,
            json.dumps([{}] * len(ids)),
            [0] * len(ids),
            json.dumps([{"job_type": "t", **kind}]),
            json.dumps(texts),
            flow,
        )
        return [self.db.seq_of(one) for one in ids]

    def _id(self, ids: Sequence[UUID], parent: object) -> object:
        return ids[parent] if isinstance(parent, int) else parent

    def flow(self, name: str = "flow", workspace: str = "default") -> UUID:
        made = uuid4()
        self.db.one("select laneway.create_flow(%s, %s, %s)", made, name, workspace)
        return made

    def status(self, seq: int) -> str:
        return str(self.db.one("select status from laneway.jobs_view where seq = %s", seq))

    def claim(self, seq: int, job_type: str = "t") -> Claim:
        """Claims this job; others of its type are released again."""
        claimed = {one.seq: one for one in self.db.claimed(10_000, [job_type])}
        for other, claim in claimed.items():
            if other != seq:
                self.db.settle(claim, "release", delay_s=0)
        return claimed[seq]

    def end(self, *seqs: int, kind: str = "finish") -> list[WriteResult]:
        """Claims these jobs and ends them together, then does what is left to do."""
        answers = self.settle([self.claim_of(seq) for seq in seqs], kind)
        self.advance()
        return answers

    def claim_of(self, seq: int) -> Claim:
        """The claim of this job, which is made if it is not running."""
        running = self.db.rows("select attempt from laneway.lease where seq = %s", seq)
        return Claim(seq, self.db.id_of(seq), running[0][0]) if running else self.claim(seq)

    def settle(self, claims: Sequence[Claim], kind: str = "finish") -> list[WriteResult]:
        """Ends attempts in one call."""
        text = None if kind == "finish" else error()
        return self.db.run(leases.settle([Verdict(one, kind, error=text) for one in claims]))

    def advance(self, limit: int = 1000) -> set[str]:
        """Does everything that is left to do; returns the job types to wake."""
        woken: set[str] = set()
        for _ in range(1000):
            answer = self.db.run(edges.advance(limit))
            woken.update(answer.job_types or ())
            if not answer.more:
                return woken
        raise AssertionError("there is always more to do")

    def arrivals(self) -> list[tuple[Any, ...]]:
        return self.db.rows("select kind, seq, n from laneway.arrivals order by id")

    def are_consistent(self) -> bool:
        """Whether each countdown is the number of its open edges and uncounted arrivals."""
        return not self.db.rows(
            "select seq, sum(n) from ("
            "   select child as seq, count(*) as n from laneway.open_edges group by child"
            "   union all select seq, n from laneway.arrivals"
            "     where kind in ('counted', 'retried')"
            "   union all select seq, -missing from laneway.countdowns) x"
            " group by seq having sum(n) <> 0"
        )
