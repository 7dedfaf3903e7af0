"""What the worker of a stream offers to run."""

from __future__ import annotations

from typing import NamedTuple

from laneway.domain.approval import analysis_of
from laneway.rpc.server.handshake import StreamHandshake


class ServedTypes(NamedTuple):
    """A job type, or the analyses of one, that the worker of a stream runs."""

    job_type: str
    isolation: str


def offers_of(hello: StreamHandshake) -> list[ServedTypes]:
    offers = [ServedTypes(one.name, one.isolation) for one in hello.types]
    # Whatever its handler needs, a plan is made on the worker's event loop or in a thread.
    offers += [
        ServedTypes(analysis_of(one.name), "async" if one.isolation == "async" else "thread")
        for one in hello.types
        if one.has_analysis
    ]
    return offers
