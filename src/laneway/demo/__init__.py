"""`laneway demo`: real worker processes and a sample workload on an embedded PostgreSQL.

show.py       starts and stops the server and the environment. Start reading here.
run.py        one run: workers, scenarios, live view, report
app.py        the sample application: handlers, as a user would write them
workload.py   the many small jobs, and the trickle that follows
scenarios.py  jobs that are long, fail, lose their worker, run isolated or are cancelled
workers.py    the worker processes: started, replaced when they die, stopped with the demo
home.py       a private directory that leaves nothing behind, not even after kill -9
events.py     the event log, and the states of all jobs
screen.py     the live view
report.py     the figures, and the checks they must pass

Uses app and every layer below it; only cli uses this.
"""

from __future__ import annotations


def run_demo(once: bool, *, color: bool = True) -> int:
    """Run until Ctrl-C, or with `once` to the end; return the exit code."""
    from laneway.demo.show import run

    return run(once, color)
