"""`laneway demo`: real worker processes and a sample workload on an embedded PostgreSQL.

show.py       starts and stops PostgreSQL and the environment. Start reading here.
run.py        one run: workers, scenarios, live view, report
app.py        the sample application: handlers, as a user would write them
scenarios.py  jobs that are long, fail, lose their worker, run isolated or are cancelled
workers.py    the worker processes: started, replaced when they die, stopped with the demo
home.py       a private directory that leaves nothing behind, not even after kill -9
events.py     the event log, and the states of all jobs
screen.py     the live view
report.py     the figures, and the checks they must pass

Without `--once`, the demo also serves the dashboard and fills each of its screens:

server.py       the HTTP API and gRPC, in the demo's process
library.py      the application with more handlers: digests.py, documents.py, indexes.py
people.py       principals, roles, tokens, lanes, limits and schedules
sample_jobs.py  jobs that run, wait for every reason, fail or need an approval
history.py      ended jobs with a past date, marked with the tag `sample`
trickle.py      new jobs, until the demo is stopped

Uses app and every layer below it; only cli uses this.
"""

from __future__ import annotations


def run_demo(
    once: bool,
    *,
    color: bool = True,
    seed: int = 1,
    port: int | None = None,
    open_browser: bool = True,
) -> int:
    """Run until Ctrl-C, or with `once` to the end; return the exit code.

    The dashboard is served at `port`, by default 8420 or any that is free. `seed` chooses the
    sample data.
    """
    from laneway.demo.show import DemoOptions, run

    return run(DemoOptions(once, seed, port, open_browser), color)
