"""What workers say about trouble: enough, and not too often."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

_LINE = re.compile(r"^(\d+\.\d+) WARNING ([a-z]+): ")


def most_lines_per_second(log: Path) -> int:
    """The most complaints about one cause within any second."""
    told = defaultdict(list)
    for line in log.read_text(errors="replace").splitlines():
        if match := _LINE.match(line):
            told[match[2]].append(float(match[1]))
    most = 0
    for times in told.values():
        for i, at in enumerate(times):
            # A little less than a second: the clock of the log is read after that of the limit.
            most = max(most, sum(at <= other < at + 0.98 for other in times[i:]))
    return most
