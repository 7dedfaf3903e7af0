"""The rate of warnings in worker logs."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

_LINE = re.compile(r"^(\d+\.\d+) WARNING ([a-z]+): ")


def most_lines_per_second(log: Path) -> int:
    """The most warnings about one cause within any second."""
    warnings = defaultdict(list)
    for line in log.read_text(errors="replace").splitlines():
        if match := _LINE.match(line):
            warnings[match[2]].append(float(match[1]))
    most = 0
    for times in warnings.values():
        for i, at in enumerate(times):
            # A little less than a second: the log reads its clock after the rate limit does.
            most = max(most, sum(at <= other < at + 0.98 for other in times[i:]))
    return most
