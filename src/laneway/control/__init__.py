"""The verbs every door shares (command line, HTTP, MCP): check, run statements, tell who must know.

jobs.py      show, list, follow, cancel, reprioritize, retry, delete
approval.py  approve, reject, review a job before it
bulk.py      one of those verbs on all jobs that match a filter; bulk_runs.py: in the background
explain.py   why a job is not running, reason by reason
lanes.py     inspect, create, tune, drain, resume, move job types, the pause gate
limits.py    inspect, tune, delete limits
schedules.py list, put, enable, disable, delete, run now, slots
history.py   who changed what in the control plane, and the way back
audit.py     the act that every accepted change leaves, and reading them
freeze.py    drain lanes until they are quiet, and restore them
workers.py   the overview: lanes, slots, active jobs, live workers, leader
health.py    what `laneway doctor` looks at
signals.py   wake-ups and cancel signals, best effort

A verb takes a `store.database.Database`; one that changes something also takes `by`, who asks.
May import store, domain, config, errors; knows neither engine nor client, which submits for all
doors. Start at jobs.py.
"""
