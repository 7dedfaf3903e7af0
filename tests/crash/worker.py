"""A worker process without a supervisor: python -m tests.crash.worker APP [LANE,LANE]."""

from __future__ import annotations

import logging
import os
import sys

from laneway.app.worker_process import run_worker


def main() -> int:
    logging.basicConfig(format="%(created).3f %(levelname)s %(message)s", level=logging.INFO)
    lanes = sys.argv[2].split(",") if len(sys.argv) > 2 else None
    grace = os.environ.get("LANEWAY_SHUTDOWN_GRACE")
    return run_worker(sys.argv[1], lanes=lanes, grace=float(grace) if grace else None)


if __name__ == "__main__":
    sys.exit(main())
