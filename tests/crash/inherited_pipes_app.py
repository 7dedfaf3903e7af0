"""A mutant application: forked children keep the worker's pipes, and heartbeats rely on them.

Run as a program, it is the heartbeat process: it ends when its pipe closes, and only then.
"""

from __future__ import annotations

import time

from laneway import forks
from laneway.engine.lease import heartbeat_child
from laneway.engine.lease.heartbeat import Heartbeat


def watch_nothing(pid: int) -> None:
    time.sleep(3600)


if __name__ == "__main__":
    heartbeat_child.watch_worker = watch_nothing
    heartbeat_child.serve(heartbeat_child.database_renewer)
else:
    from tests.crash.app import lw

    __all__ = ["lw"]
    Heartbeat.child = "tests.crash.inherited_pipes_app"
    forks.Fds.fds = lambda self: ()  # type: ignore[method-assign]
