"""Statements of `laneway bench`, which needs the owner of the tables; see rights.py."""

from __future__ import annotations

from typing import Final

BENCHMARK: Final = tuple(f"benchmark/{name}" for name in (
    "check_rights", "find_progress", "find_run", "is_local", "measure_drain", "remove_ended",
    "remove_history", "remove_registration", "remove_running", "remove_waiting",
    "sample_connections",
))  # fmt: skip
