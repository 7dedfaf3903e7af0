"""The size of a claim: it grows while payloads are small, and shrinks once they are large."""

from __future__ import annotations

from uuid import uuid4

import pytest

from laneway.domain.claim import Claim
from laneway.engine.claim.capacity import MAX_CLAIM
from laneway.rpc.server.claim_size import CLAIM_BYTES, FIRST, ClaimSize
from laneway.store.leases import Assignment


def jobs(count: int, size: int = 2, checkpoint: str | None = None) -> list[Assignment]:
    one = Assignment(Claim(1, uuid4(), 1), 0, "t", "x" * size, checkpoint, 0, True)
    return [one] * count


def test_claim_size_doubles_after_small_payloads() -> None:
    portion = ClaimSize()
    seen = []
    for _ in range(7):
        portion.learn(jobs(portion.most))
        seen.append(portion.most)
    assert seen == [64, 128, 256, 512, MAX_CLAIM, MAX_CLAIM, MAX_CLAIM]


def test_short_or_empty_claim_does_not_grow_size() -> None:
    portion = ClaimSize()
    portion.learn(jobs(FIRST))
    for count in (0, 1, FIRST):
        portion.learn(jobs(count))
        assert portion.most == 2 * FIRST


@pytest.mark.parametrize("checkpoint", [None, "y" * 900_000])
def test_large_ones_lower_it_at_once(checkpoint: str | None) -> None:
    portion = ClaimSize()
    for _ in range(6):
        portion.learn(jobs(portion.most))
    portion.learn(jobs(3, 100_000, checkpoint))
    assert portion.most == CLAIM_BYTES // (100_000 + len(checkpoint or ""))
    portion.learn(jobs(1, CLAIM_BYTES * 2))
    assert portion.most == 1
    portion.learn(jobs(1))
    assert portion.most == 2, "and small ones raise it again"


def test_old_payload_sizes_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = ClaimSize(), ClaimSize()
    for _ in range(6):
        small.learn(jobs(small.most))
    large.learn(jobs(1, CLAIM_BYTES))
    monkeypatch.setattr("laneway.rpc.server.claim_size.OLD_S", -1.0)
    assert (small.most, large.most) == (FIRST, 1)


def test_claim_that_fails_is_tried_with_ever_fewer() -> None:
    portion = ClaimSize()
    for _ in range(6):
        portion.learn(jobs(portion.most))
    seen = []
    for _ in range(8):
        portion.shrink()
        seen.append(portion.most)
    assert seen == [FIRST, 16, 8, 4, 2, 1, 1, 1]
