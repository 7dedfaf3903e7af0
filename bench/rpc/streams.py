"""Remote workers that share a process: `python -m bench.rpc.streams HOST:PORT COUNT CONCURRENCY`.

With a concurrency of 0 the streams are open and idle.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack
from uuid import uuid4

from bench.app import lw
from laneway.engine.process.lifecycle import run_loop
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc._generated import dispatch_pb2_grpc
from laneway.rpc.worker.endpoint import Endpoint
from laneway.rpc.worker.worker import RemoteWorker


async def work(server: str, count: int, concurrency: int) -> int:
    endpoint = Endpoint.to(server, os.environ["LANEWAY_TOKEN"])
    settings = lw.settings.model_copy(update={"concurrency": concurrency})
    workers = [
        RemoteWorker(lw.handlers, settings, endpoint, name=f"bench {n}")
        for n in range(1, count + 1)
    ]
    try:
        await asyncio.gather(*(worker.start() for worker in workers))
        await stop_signal()
    finally:
        await asyncio.gather(*(worker.stop(0.1) for worker in workers))
    return 0


async def idle(server: str, count: int) -> int:
    import grpc  # after laneway.rpc has set gRPC's options

    endpoint = Endpoint.to(server, os.environ["LANEWAY_TOKEN"])
    types = [pb.JobType(name=record.name) for record in lw.handlers.records()]
    async with AsyncExitStack() as stack:
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(server))
        stub = dispatch_pb2_grpc.DispatchServiceStub(channel)  # type: ignore[no-untyped-call]
        streams = []
        for n in range(1, count + 1):
            request = pb.StreamJobsRequest(
                worker_id=str(uuid4()), name=f"idle {n}", job_types=types, max_in_flight=10
            )
            streams.append(stub.StreamJobs(request, metadata=endpoint.token.metadata))
        for stream in streams:
            await stream.read()
        await stop_signal()
        for stream in streams:
            stream.cancel()
    return 0


async def stop_signal() -> None:
    """Wait for SIGTERM or SIGINT."""
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    await end.wait()


if __name__ == "__main__":
    address, streams, each = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    sys.exit(run_loop(work(address, streams, each) if each else idle(address, streams)))
