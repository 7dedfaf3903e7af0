"""The command line: parse, call one method of a backend, render.

main.py      the tree of commands; `main` is the entry point. Start reading here.
session.py   settings, and the backend that one run uses
backends/    the methods of commands, done in a database or by a server
exits.py     exit codes; turns errors into messages
output.py    stdout for data, stderr for the rest; JSON, colour, text made safe for terminals
inputs.py    parsers of arguments: job ids, durations, times, payloads
tables.py, stats_tables.py   tables
history.py   `history` and `rollback`, shared by every group that has them
filter_options.py   filter options, and how a bulk verb asks before it acts
jobs.py, job_actions.py, watch.py, lanes.py, limits.py, freeze.py, schedules.py, workers.py,
worker.py, db.py, doctor.py, stats.py   the commands

Nothing heavy is imported before a command needs it: `laneway --help` must stay quick.
"""
