"""The application with forked children that keep the worker's pipes, and heartbeats that trust it.

Run as a program it is the heartbeat process: one that ends when its pipe does, and only then.
"""

from __future__ import annotations

import time

from laneway import forks
from laneway.engine.lease import heartbeat_child
from laneway.engine.lease.heartbeat import Heartbeat


def watch_nobody(pid: int) -> None:
    time.sleep(3600)


if __name__ == "__main__":
    heartbeat_child.watch_worker = watch_nobody
    heartbeat_child.serve(heartbeat_child.database_renewer)
else:
    from tests.crash.app import lw

    __all__ = ["lw"]
    Heartbeat.child = "tests.crash.inherited_pipes_app"
    forks.Fds.fds = lambda self: ()  # type: ignore[method-assign]
