"""Remote workers over gRPC: the server that dispatches to them, and a worker in Python."""

import os
import sys
from typing import Final

# We start programs and never fork. But uvloop has gRPC do at each start of a program what it does
# at a fork, and its connections may never work again. It looks for this as it is imported.
IS_LATE: Final = "grpc" in sys.modules and "GRPC_ENABLE_FORK_SUPPORT" not in os.environ
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# What it has to say of a connection is in the errors that we tell. Its own lines have no format of
# ours, and whoever connects could add some.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
