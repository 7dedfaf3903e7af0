"""The files in deploy/ are those that the documents show."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_documented_unit_is_the_shipped_one() -> None:
    page = (ROOT / "docs/howto/production.md").read_text("utf-8")
    (block,) = re.findall(r'^```ini title="laneway-worker.service"\n(.*?)^```', page, re.S | re.M)
    assert block == (ROOT / "deploy/systemd/laneway-worker.service").read_text("utf-8")
