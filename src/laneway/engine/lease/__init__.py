"""Keeps leases alive and writes results, fenced by the attempt.

heartbeat.py, heartbeat_child.py, heartbeat_wire.py   renew leases from a separate process
completer.py      writes outcomes in batches until each is accepted or refused
reporter.py       writes progress, checkpoints and log lines
attempt_store.py  the interface to the database or to a server
job_log.py        log lines about attempts that start and end
attempt_log.py    log lines about failed and lost attempts
"""
