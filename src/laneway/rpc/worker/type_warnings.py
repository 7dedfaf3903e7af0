"""Warnings about job types that a server does not serve as the worker declares them."""

from __future__ import annotations

from laneway.domain.text import visible
from laneway.observability.safe_logger import SafeLogger
from laneway.rpc._generated import dispatch_pb2 as pb

log = SafeLogger("laneway")


class TypeWarnings:
    """Logs each warning once, not with every stream."""

    def __init__(self) -> None:
        self._uncovered = ""
        self._ignored = ""
        self._refused = ""

    def warn(self, first: pb.StreamJobsResponse) -> None:
        """Logs what differs in the first message of a stream from that of the last stream."""
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
                "the server refuses the argument schema of %s: this worker checks payloads,"
                " submits are not checked",
                refused,
            )
        if uncovered and uncovered != self._uncovered:
            log.warning("the token does not cover %s: this worker gets no such jobs", uncovered)
        if ignored and ignored != self._ignored:
            log.warning(
                "declarations that differ from the published ones are not in force: %s"
                " (the token needs workers:declare)",
                ignored,
            )
        self._uncovered, self._ignored, self._refused = uncovered, ignored, refused


def _unpublished(one: pb.Ignored) -> list[str]:
    """The fields whose published values differ."""
    return [name for name in one.fields if not (name == "arguments" and one.arguments_refused)]
