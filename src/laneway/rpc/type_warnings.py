"""Warnings about job types that a server does not serve as the worker declares them."""

from __future__ import annotations

import logging

from laneway.domain.text import visible
from laneway.rpc._generated import dispatch_pb2 as pb

log = logging.getLogger("laneway")


class TypeWarnings:
    """Logs each warning once, not whenever a stream is opened again."""

    def __init__(self) -> None:
        self._uncovered = ""
        self._ignored = ""

    def warn(self, first: pb.StreamJobsResponse) -> None:
        """Compare the first message of a stream with that of the stream before."""
        uncovered = visible(", ".join(first.uncovered))
        ignored = visible(
            "; ".join(f"{one.job_type}: {', '.join(one.fields)}" for one in first.ignored)
        )
        if uncovered and uncovered != self._uncovered:
            log.warning("the token does not cover %s: no such jobs are sent", uncovered)
        if ignored and ignored != self._ignored:
            log.warning(
                "declared otherwise than published, and not in force: %s (the token needs"
                " workers:declare)",
                ignored,
            )
        self._uncovered, self._ignored = uncovered, ignored
