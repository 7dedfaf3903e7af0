"""Runs handlers in child processes, so that they cannot harm the worker.

process_pool.py, process.py   the worker's side: a pool, and one child
run.py, runs.py               one job in a child; all such jobs of a worker
main.py, setup.py, handlers.py, channel.py, output.py   the child's side
wire.py                       the messages between them
"""
