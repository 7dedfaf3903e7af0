"""Every row of the security checklist that is ours names existing tests."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "reference" / "security.md"
ROWS = {*range(1, 13), 14, *range(16, 23), *range(26, 33)}


def test_every_row_of_the_checklist_names_tests_that_exist() -> None:
    rows = dict(re.findall(r"^\| (\d+) \|(.*)$", TABLE.read_text(encoding="utf-8"), re.MULTILINE))
    assert {int(number) for number in rows} == ROWS
    missing = []
    for number, text in rows.items():
        named = re.findall(r"`(tests/\S+)::(\w+)`", text)
        assert named, number
        for path, name in named:
            source = (ROOT / path).read_text(encoding="utf-8")
            if not re.search(rf"^(?:async )?def {name}\(", source, re.MULTILINE):
                missing.append(f"{path}::{name}")
    assert missing == []
