"""Runs jobs in a worker process.

claim/     finds and claims work: one loop per lane, wake-ups, capacity
run/       runs a handler on the event loop or in a thread: context, steps, outcomes
child/     runs a handler in a child process
lease/     keeps leases alive and writes results, progress and logs, all fenced
leader/    the services of the one leading process: watchdog, scheduler, retention
process/   the operating-system process: start, stop, supervise, log

Start reading at worker.py. May import domain, store, config and errors; never control or a door.
"""
