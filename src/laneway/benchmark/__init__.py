"""`laneway bench`: measure Laneway for a minute in the user's database, beside the raw limit there.

run.py         the phases of a run. Start reading here.
app.py         the handlers that it runs
worker.py      the worker process, which never leads
load.py        the load of a drain: worker, connections to the database, the machine
bottleneck.py  the sentence about what limits the rate
report.py      the figures, as a table and as JSON

The jobs are in a workspace and a lane that only the benchmark uses; store/benchmark removes them.
Uses app and every layer below it; only cli uses this.
"""
