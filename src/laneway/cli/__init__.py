"""The command line: parse, call one method of a backend, render.

main.py        the tree of commands; `main` is the entry point. Start reading here.
connection.py  settings, and the backend that one run uses
backends/      the methods of commands, on a database or through a server
exits.py       exit codes; turns errors into messages
output.py      stdout for data, stderr for the rest; JSON, colour, text made safe for terminals
inputs.py      parsers of arguments: job ids, durations, times, payloads
job_ids.py     finds the job of a prefix; short ids for tables
completion.py, name_notes.py, variables.py   words for the shell; notes about unknown names
tables.py, job_tables.py, stats_tables.py, access_tables.py, approvals.py   tables
history.py     `history` and `rollback`, shared by the groups that have them
option_groups.py    adds options to several commands:
  setting_options.py  those made from the settings of an object
  filter_options.py   those of a filter; preview, confirmation and result of bulk verbs
  process_options.py  those of workers and servers
jobs.py, job_actions.py, watch.py, lanes.py, limits.py, freeze.py, schedules.py, workers.py,
worker.py, db.py, doctor.py, bench.py, stats.py   the commands
top.py, top_loop.py, top_view.py   `top`: its command, its loop and keys, its state and frame

Commands import heavy modules only when they run: `laneway --help` must stay fast.
"""
