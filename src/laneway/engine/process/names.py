"""The default name of a worker process."""

from __future__ import annotations

import os
import socket


def default_name() -> str:
    """`LANEWAY_WORKER_NAME`, else host and process id."""
    return os.environ.get("LANEWAY_WORKER_NAME") or f"{socket.gethostname()}:{os.getpid()}"
