"""Laneway as the backend of Django's tasks.

backend.py      LanewayBackend, for TASKS in the settings
application.py  the Laneway instance behind a backend: its database, lanes and handlers
attempts.py     runs a task in a worker, with Django's signals and connections
results.py      jobs as results of tasks
framework.py    names of django.tasks, or of the package django-tasks
database.py     Django's database as a DSN
worker.py       the application that workers load
admin.py        a link to the dashboard in Django's admin

Add "laneway.integrations.django" to INSTALLED_APPS.
"""
