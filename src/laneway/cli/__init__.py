"""The command line: parse, call one verb of a desk, render.

main.py      the tree of commands; `main` is the entry point. Start reading here.
session.py   settings, and where and as whom one run does its verbs
desks/       the verbs, done in a database or by a server: commands know no more than that
exits.py     exit codes, and the one place that turns an error into a message
output.py    stdout for data, stderr for the rest; JSON, colour, text made safe for terminals
inputs.py    what arguments may look like: job ids, durations, times, payloads
tables.py    jobs, lanes, limits, changes and workers as tables
history.py   `history` and `rollback`, given to each group whose rows have them
selection.py the options of a filter, and the way of a bulk verb: count, ask, do, tell
jobs.py, operate.py, watch.py, lanes.py, limits.py, freeze.py, schedules.py, workers.py, worker.py,
db.py, doctor.py   the commands

Nothing heavy is imported before a command needs it: `laneway --help` must stay quick.
Uses wiring, control, store (never the driver), http, config, domain and errors; nothing uses it.
"""
