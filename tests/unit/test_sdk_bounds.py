"""The TypeScript SDK has the bounds of the domain."""

from __future__ import annotations

from pathlib import Path

from laneway.domain.payload import PayloadLimits
from laneway.domain.retry import LARGEST_FACTOR, MAX_STEPS

SDK = Path(__file__).resolve().parents[2] / "sdk" / "typescript" / "src"


def test_typescript_payload_depth_is_that_of_the_domain() -> None:
    assert f"MAX_DEPTH = {PayloadLimits().max_depth};" in (SDK / "json.ts").read_text("utf-8")


def test_typescript_retry_bounds_are_those_of_the_domain() -> None:
    text = (SDK / "call_retry.ts").read_text("utf-8")
    assert f"MAX_FACTOR = {LARGEST_FACTOR:_};" in text
    assert f"MAX_STEPS = {MAX_STEPS};" in text
