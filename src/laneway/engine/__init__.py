"""What makes work happen in a worker process.

A job's way: poller or wake-up → lane_loop → claimer (one batch) → executor (async, thread or child
process) → completer (one batch, fenced). Beside it: heartbeat (renews leases from a process of its
own), reporter (progress, checkpoints, logs), watchdog (the leader's duty), supervisor (N processes).
Start reading at worker.py. May import domain, store, config, errors; never control or a door.
"""
