"""The verbs that all interfaces share (command line, HTTP, MCP): check, run statements, notify.

jobs.py      show, list, follow, cancel, reprioritize, retry, run_now, delete
approval.py  review, approve, reject
bulk.py      one of those verbs on all jobs that match a filter; bulk_runs.py: in the background
explain.py   the reasons why a job is not running
lanes.py     inspect, create, tune, drain, resume, move job types, the pause gate
operators/   how each declared operation is done here
limits.py    inspect, tune, delete limits
schedules.py list, put, enable, disable, delete, run now, slots
resources.py `lw.lanes`, `lw.limits`, `lw.schedules`, `lw.jobs`: these verbs for an application
history.py   changes of the control plane, and rollbacks
audit.py     the entry that every accepted change writes, and reading entries
freeze.py    drain lanes until nothing runs, and restore them
workers.py   the overview: lanes, slots, active jobs, live workers, leader
health.py    the checks of `laneway doctor`; commit_speed.py: what its times limit
notifications.py  wake-ups and cancel notifications, best effort

A verb takes a `store.database.Database`; a verb that changes something also takes `by`, the actor.
May import store, domain, config and errors, but neither engine nor client, which submits jobs for
all interfaces. Start at jobs.py.
"""
