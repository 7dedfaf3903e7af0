"""Django's tables and Laneway's in one database for tests."""

from laneway.testing.django import django_db_setup  # noqa: F401
