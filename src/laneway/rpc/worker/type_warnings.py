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
        self._refused = ""

    def warn(self, first: pb.StreamJobsResponse) -> None:
        """Compare the first message of a stream with that of the stream before."""
        uncovered = visible(", ".join(first.uncovered))
        ignored = visible(
            "; ".join(
                f"{one.job_type}: {', '.join(fields)}"
                for one in first.ignored
                if (fields := _unpublished(one))
            )
        )
        refused = visible(
            "; ".join(
                f"{one.job_type} ({one.arguments_refused})"
                for one in first.ignored
                if one.arguments_refused
            )
        )
        if refused and refused != self._refused:
            log.warning(
                "the server refuses the schema of the arguments of %s: payloads are checked by"
                " this worker, not at submit",
                refused,
            )
        if uncovered and uncovered != self._uncovered:
            log.warning("the token does not cover %s: no such jobs are sent", uncovered)
        if ignored and ignored != self._ignored:
            log.warning(
                "declared otherwise than published, and not in force: %s (the token needs"
                " workers:declare)",
                ignored,
            )
        self._uncovered, self._ignored, self._refused = uncovered, ignored, refused


def _unpublished(one: pb.Ignored) -> list[str]:
    """The fields that are published otherwise."""
    return [name for name in one.fields if not (name == "arguments" and one.arguments_refused)]
