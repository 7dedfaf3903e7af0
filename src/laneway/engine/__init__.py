"""What makes work happen in a worker process.

A job's way: poller or wake-up → lane_loop (claims one batch) → executor (async, thread or child
process) → completer (one batch, fenced). Beside it: heartbeat (renews leases from a process of
its own), reporter (progress, checkpoints, logs), watchdog (the leader's duty), scheduler (jobs on
a cron), supervisor.
Start reading at worker.py. May import domain, store, config, errors; never control or a door.
"""
