"""The seam to the generator. Put your pipeline behind `Generator`; this one is for trying.

Like the real one, it has state that a whole process shares, so a process may run only one at a
time. It reads three words in a text:

    hold    the section ends when the file named by FAKE_GENERATOR_GATE exists
    slow    the section takes a second
    crash   the process dies
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from pathlib import Path

_terms: Counter[str] = Counter()
"""Shared by the whole process: two generators at once would mix their terms."""


class Generator:
    """Counts the capitalized words of a text, section by section."""

    def __init__(self) -> None:
        _terms.clear()

    def read(self, section: str) -> None:
        words = re.findall(r"\w+", section)
        gate = os.environ.get("FAKE_GENERATOR_GATE")
        while "hold" in words and gate and not Path(gate).exists():
            time.sleep(0.05)
        if "slow" in words:
            time.sleep(1)
        if "crash" in words:
            os.kill(os.getpid(), signal.SIGKILL)
        _terms.update(word for word in words if word[0].isupper())

    def terms(self) -> list[str]:
        return sorted(_terms)
