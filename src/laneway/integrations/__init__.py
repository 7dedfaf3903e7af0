"""Integrations with other frameworks, one module each.

django/        a backend of Django's tasks, commands and a link in the admin
fastapi.py     a worker with the lifespan of a FastAPI or Starlette application
flask.py       Laneway's errors as responses of a Flask application
sentry.py      reports failures of handlers to Sentry
signals.py     calls a function on a stop signal, before the framework reacts

Imports client and app; nothing imports it.
"""
