"""The services that only the leading process runs.

services.py          the set of them that a server runs
watchdog.py          elects the leader and reclaims jobs of silent workers
scheduler.py, schedule_checks.py   submits the jobs of schedules
retention.py         deletes old finished jobs, expires unapproved ones
"""
