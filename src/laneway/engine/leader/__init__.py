"""The services of the one process that leads.

services.py          takes part in the election and runs what follows, also in a server
watchdog.py          reclaims jobs of silent workers
scheduler.py, schedule_checks.py   submits the jobs of schedules
retention.py         deletes old finished jobs, expires unapproved ones
"""
