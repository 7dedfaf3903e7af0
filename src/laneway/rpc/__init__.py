"""Remote workers over gRPC.

server/   dispatches jobs to workers
worker/   a worker in Python
declaration.py, messages.py   shared by both: the content of messages
_generated/   the code made from proto/
"""

import os
import sys
from typing import Final

# We start programs and never fork. But uvloop runs gRPC's fork handlers at each start of a program,
# which can break its connections for good. gRPC reads this variable when it is imported.
IS_LATE: Final = "grpc" in sys.modules and "GRPC_ENABLE_FORK_SUPPORT" not in os.environ
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# Our errors already name connection problems. gRPC's own lines lack our format, and clients can
# cause them.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
