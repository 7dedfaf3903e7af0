"""Remote workers as real programs, to be killed and signalled."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.rpc.scripted_server import TOKEN
from tests.support.warm_program import WarmPopen
from tests.support.worker_command import ROOT, WorkerCommand

APP = "tests.rpc.app:lw"


class RemoteWorkerCommand(WorkerCommand):
    """`laneway remote-worker` and all its child processes, without a database."""

    def __init__(
        self, address: str, *options: str, log: Path | None = None, **environment: str
    ) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("LANEWAY_", "PG"))}
        kept.pop("DATABASE_URL", None)
        command = ["-m", "laneway", "remote-worker", APP, "--server", address, *options]
        with (log or Path(os.devnull)).open("wb") as out:
            self.process = WarmPopen(
                [sys.executable, *command],
                cwd=ROOT,
                env={
                    **kept,
                    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
                    "LANEWAY_TOKEN": TOKEN,
                    **environment,
                },
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self._seen = set()
