"""Runs jobs in a worker process.

claim/     finds and claims work: one loop per lane, wake-ups, capacity
run/       runs a handler: context, steps, outcomes
child/     runs a handler in a child process
lease/     keeps leases alive and writes results, progress and logs, all fenced
leader/    services that only the leading process runs: watchdog, scheduler, retention
webhook/   delivers webhooks: a handler of Laneway's own
process/   the operating-system process: start, stop, supervise, log

Start at runtime.py, the life of every worker, then worker.py, whose jobs come from a database. May
import domain, store, config and errors; never control or an interface.
"""
