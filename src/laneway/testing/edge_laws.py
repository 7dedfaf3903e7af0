"""The law of jobs that come after others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from laneway.testing.history import Final, History
from laneway.testing.violation import Violation


def after_its_parents(history: History, final: Final) -> Iterator[Violation]:
    """I16: a job runs only after every job that it comes after completed, or ended if it may."""
    links = {e.job: e.more for e in history.of("linked") if e.more["parents"]}
    ends: defaultdict[str | None, set[str]] = defaultdict(set)
    for event in history.of("outcome", "claim"):
        if event.what == "outcome":
            ends[event.job].add(event.more["status"])
        elif (link := links.get(event.job)) is not None:
            for parent in link["parents"]:
                if not ends[parent] or (link["rule"] != "run" and "completed" not in ends[parent]):
                    ended = ", ".join(sorted(ends[parent])) or "not ended"
                    yield Violation("I16", event.job, f"claimed while its parent {parent}: {ended}")
