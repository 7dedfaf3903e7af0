"""Fixtures of pytest-django for projects whose tasks are jobs.

In conftest.py: `from laneway.testing.django import django_db_setup`. Django's tables are then in
the database of `laneway_database`, so that tests enqueue tasks in Django's transactions and run
them with `run_due`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.test.utils import setup_databases, teardown_databases
from psycopg.conninfo import conninfo_to_dict

from laneway.integrations.django.worker import BACKEND_VARIABLE, find_backend

# The keys of Django's settings for parts of a DSN. The others are options of the driver.
_KEYS = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}


@pytest.fixture(scope="session")
def django_db_setup(
    laneway_database: str,
    django_test_environment: None,
    django_db_blocker: Any,
    django_db_modify_db_settings: None,
) -> Iterator[None]:
    """Creates Django's tables beside Laneway's; other databases of the settings as usual."""
    application = find_backend(os.environ.get(BACKEND_VARIABLE)).application
    if not application.is_shared:
        raise ImproperlyConfigured(
            "the fixture django_db_setup of laneway.testing.django is for jobs in a database of"
            " Django: leave it out if OPTIONS has a DATABASE_URL"
        )
    alias = application.using
    _use(alias, laneway_database)
    with django_db_blocker.unblock():
        setup_databases(verbosity=0, interactive=False, keepdb=True, aliases={alias})
        others = setup_databases(0, interactive=False, aliases=set(connections) - {alias})
    yield
    with django_db_blocker.unblock():
        connections[alias].close()
        teardown_databases(others, verbosity=0)


def _use(alias: str, dsn: str) -> None:
    """Let Django connect to this database, also from other threads."""
    parts = conninfo_to_dict(dsn)
    connection = connections[alias]
    connection.close()
    # The same dictionary as in the settings.
    settings = connection.settings_dict
    settings.update({key: str(parts.pop(name, "")) for name, key in _KEYS.items()})
    # A connection of another thread closes when its task ends, not with the thread.
    settings.update(OPTIONS=parts, CONN_MAX_AGE=0)
    settings["TEST"]["NAME"] = settings["NAME"]
