"""Remote workers over gRPC: the server that dispatches to them, and a worker in Python."""

import os

# We start programs and never fork: without this each start is a line of gRPC's on stderr.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# What it has to say of a connection is in the errors that we tell. Its own lines have no format of
# ours, and whoever connects could add some.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
