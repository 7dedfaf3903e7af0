"""Random flows under random ends, cancels, retries and submits, held against a small model.

Two workers act in turn, and open transactions of one overlap calls of the other. The model knows
which parents have satisfied their edges. So it knows which jobs may run, and which must not wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

import pytest

from laneway.domain.claim import Claim
from tests.store.edges import Edges
from tests.support.store_client import StoreClient

JOBS = 14
STEPS = 60
ENDED = ("completed", "failed", "cancelled")
RULES = ("cancel", "run", "hold")


@dataclass
class Node:
    """One job, as the model sees it."""

    rule: str
    parents: list[int] = field(default_factory=list)
    # Parents that have not satisfied their edge.
    missing: set[int] = field(default_factory=set)
    status: str = "waiting"
    # Whether it was asked to stop while it runs.
    is_asked: bool = False
    is_in_flow: bool = False


class Walk:
    """The jobs of one walk in the database and in the model."""

    def __init__(self, db: StoreClient, other: StoreClient, random: Random) -> None:
        self.clients = (Edges(db), Edges(other))
        self.random = random
        self.flow: UUID = self.clients[0].flow()
        self.nodes: dict[int, Node] = {}
        self.claims: tuple[dict[int, Claim], ...] = ({}, {})

    def submit(self) -> None:
        parents = self.random.sample(
            sorted(self.nodes), self.random.randint(0, 3) % (len(self.nodes) + 1)
        )
        rule = self.random.choice(RULES)
        flow: dict[str, Any] = {"flow": self.flow} if self.random.random() < 0.7 else {}
        seq = self.client.submit(after=parents, after_failure=rule, **flow)
        node = self.nodes[seq] = Node(rule, parents, is_in_flow=bool(flow))
        node.missing = {p for p in parents if not self.is_satisfied(p, rule)}
        if any(self.nodes[p].status in ENDED for p in node.missing) and rule == "cancel":
            node.status = "cancelled"
        elif not node.missing:
            node.status = "approved"

    @property
    def client(self) -> Edges:
        return self.random.choice(self.clients)

    def is_satisfied(self, parent: int, rule: str) -> bool:
        status = self.nodes[parent].status
        return status == "completed" or (rule == "run" and status in ENDED)

    def ended(self, seq: int, status: str) -> None:
        """The effect of an end on the model: edges, then the cascade."""
        self.nodes[seq].status = status
        for child, node in sorted(self.nodes.items()):
            if seq not in node.missing:
                continue
            if self.is_satisfied(seq, node.rule):
                node.missing.discard(seq)
                if node.status == "waiting" and not node.missing:
                    node.status = "approved"
            elif node.rule == "cancel" and node.status == "waiting":
                self.ended(child, "cancelled")

    def claim(self) -> None:
        which = self.random.randrange(2)
        for claim in self.clients[which].db.claimed(self.random.randint(1, 3)):
            assert self.nodes[claim.seq].status == "approved", "it ran before its parents, or twice"
            self.nodes[claim.seq].status = "running"
            self.claims[which][claim.seq] = claim

    def end(self) -> None:
        """Some ends of each worker, the second while the first is not committed."""
        kind = self.random.choice(("finish", "finish", "finish", "giveup", "cancel"))
        first, second = self.clients if self.random.random() < 0.5 else self.clients[::-1]
        ended: list[int] = []
        first.db.begin()
        for client in (first, second):
            held = self.claims[self.clients.index(client)]
            some = self.random.sample(sorted(held), self.random.randint(0, len(held)))
            if some:
                client.settle([held.pop(seq) for seq in some], kind)
                ended += some
        first.db.commit()
        status = {"finish": "completed", "giveup": "failed", "cancel": "cancelled"}[kind]
        for seq in ended:
            self.nodes[seq].status = "cancelled" if self.nodes[seq].is_asked else status
            self.nodes[seq].is_asked = False
        for seq in ended:
            self.ended(seq, self.nodes[seq].status)

    def cancel(self) -> None:
        waiting = [s for s, n in self.nodes.items() if n.status in ("waiting", "approved")]
        if waiting:
            seq = self.random.choice(waiting)
            self.client.db.cancel(seq)
            self.ended(seq, "cancelled")

    def retry(self) -> None:
        ended = [s for s, n in self.nodes.items() if n.status in ("failed", "cancelled")]
        if ended:
            seq = self.random.choice(ended)
            self.client.db.retry(seq)
            self.retried(seq)

    def retried(self, seq: int) -> None:
        """A retried job waits again for parents that have not ended."""
        node = self.nodes[seq]
        if node.rule == "run":
            node.missing |= {p for p in node.parents if self.nodes[p].status not in ENDED}
        node.status = "waiting" if node.missing else "approved"

    def cancel_flow(self) -> None:
        self.client.db.one("select laneway.cancel_flow(%s, 'ann', 'stop')", self.flow)
        for seq, node in sorted(self.nodes.items(), reverse=True):
            if node.is_in_flow and node.status == "running":
                node.is_asked = True
            elif node.is_in_flow and node.status not in ENDED:
                self.ended(seq, "cancelled")

    def retry_flow(self) -> None:
        self.client.db.one("select laneway.retry_flow(%s)", self.flow)
        for seq, node in sorted(self.nodes.items()):
            if node.is_in_flow and node.status in ("failed", "cancelled"):
                self.retried(seq)

    def check(self) -> None:
        client = self.clients[0]
        client.advance(self.random.choice((2, 5, 1000)))
        assert client.arrivals() == []
        found = {seq: client.status(seq) for seq in self.nodes}
        assert found == {seq: node.status for seq, node in self.nodes.items()}
        assert client.are_consistent()


@pytest.mark.parametrize("seed", range(25))
def test_no_job_starts_early_or_waits_for_ever(
    db: StoreClient, other: StoreClient, seed: int
) -> None:
    random = Random(seed)
    walk = Walk(db, other, random)
    for _ in range(4):
        walk.submit()
    for _ in range(STEPS):
        verbs = [walk.claim, walk.claim, walk.end, walk.end, walk.cancel, walk.retry]
        verbs += [random.choice((walk.cancel_flow, walk.retry_flow, walk.retry_flow))]
        random.choice([*verbs, walk.submit] if len(walk.nodes) < JOBS else verbs)()
        walk.check()
