"""Half an hour of steady load with retention on, and again under a long transaction.

run.py        the command: `make endurance MINUTES=30`. Start reading here.
plan.py       durations and windows of a run, for any number of minutes
app.py        the handler that notes how long each job waited for its start
submitter.py  the process that submits at a steady rate, or as fast as jobs end
waits.py      counts of waits, by second; percentiles of a window
samples.py    sizes of tables and indexes, memory and CPU, read again and again
results.py    the figures with their targets
page.py       docs/reference/endurance.md, written from bench/latest/endurance.json
"""
