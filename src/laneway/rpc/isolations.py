"""Isolations, as handlers name them and as messages do."""

from __future__ import annotations

from typing import Final

from laneway.rpc._generated import dispatch_pb2 as pb

ISOLATIONS: Final = {
    "async": pb.ISOLATION_ASYNC,
    "thread": pb.ISOLATION_THREAD,
    "process": pb.ISOLATION_PROCESS,
}
_KINDS: Final = {isolation: kind for kind, isolation in ISOLATIONS.items()}


def needs(one: pb.JobType) -> set[str]:
    """The isolations in which a server counts jobs of a type and its analyses."""
    kinds = {_KINDS[one.isolation]}
    return kinds | {"thread"} if one.has_analysis and "async" not in kinds else kinds
