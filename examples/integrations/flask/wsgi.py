"""The module that servers load: `gunicorn --threads 4 wsgi:app`."""

from shop import app, lw

# Not in shop.py: `flask shell` and tests import that, and need no worker.
worker = lw.sync.worker()
worker.start()

__all__ = ["app"]
