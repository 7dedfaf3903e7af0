"""A worker as an operating-system process.

lifecycle.py, deadline.py   start, serve, stop on a signal within the grace
start_retry.py   which failures at start are waited for
supervisor.py, spawned.py, loop_marker.py   several processes under one parent
logs.py          log format
health.py, memory.py, worker_metrics.py   health, memory and counters of a worker
"""
