"""`laneway demo`: real worker processes and a sample workload on an embedded PostgreSQL.

show.py         server and surroundings, up and down again. Start reading here.
performance.py  workers, stories, view and judgement, in order
app.py          the sample application: handlers, as a user would write them
workload.py     the many small jobs, and the trickle that follows
stories.py      the jobs that something happens to: a long one, failing, killed, isolated, cancelled
crew.py         the worker processes: started, replaced when they die, gone when we are
home.py         a private directory that leaves nothing behind, not even after kill -9
chronicle.py    what happened, in plain words, and what every job has come to
screen.py       the live view
findings.py     the figures, and the laws they must keep

Uses wiring and all below it; only cli uses this.
"""

from __future__ import annotations


def run_demo(once: bool, *, color: bool = True) -> int:
    """Shows Laneway at work until Ctrl-C; `once`: runs to the end and judges. The exit code."""
    from laneway.demo.show import run

    return run(once, color)
