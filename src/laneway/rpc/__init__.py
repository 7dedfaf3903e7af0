"""Remote workers over gRPC: the server that dispatches to them, and a worker in Python."""

import os

# We start programs and never fork: without this each start is a line of gRPC's on stderr.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
