"""The application that workers load: `laneway.integrations.django.worker:app()`."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Final

import django
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules

from laneway.app.laneway import Laneway
from laneway.integrations.django.backend import LanewayBackend

REFERENCE: Final = "laneway.integrations.django.worker:app()"
# The backend of TASKS to work for. Child processes load the same.
BACKEND_VARIABLE: Final = "DJANGO_LANEWAY_BACKEND"


def app() -> Laneway:
    """The Laneway instance of a backend, with the tasks of all `tasks` modules and IMPORTS."""
    if not apps.ready:
        django.setup()
    backend = find_backend(os.environ.get(BACKEND_VARIABLE))
    autodiscover_modules("tasks")
    for name in backend.application.imports:
        import_module(name)
    return backend.lw


def find_backend(alias: str | None) -> LanewayBackend:
    """The backend of this alias; without one, the only LanewayBackend of TASKS."""
    if django.VERSION >= (6, 0):
        from django.tasks import task_backends
    else:
        from django_tasks import task_backends

    names = [alias] if alias is not None else list(task_backends)
    backends = {name: task_backends[name] for name in names}
    found = {name: one for name, one in backends.items() if isinstance(one, LanewayBackend)}
    if len(found) != 1:
        raise ImproperlyConfigured(_unclear(alias, sorted(found)))
    backend: LanewayBackend = next(iter(found.values()))
    return backend


def _unclear(alias: str | None, found: list[str]) -> str:
    if found:
        names = ", ".join(found)
        return (
            f"several backends in TASKS are Laneway's ({names}): name one with --backend of"
            f" laneway_worker, or in the variable {BACKEND_VARIABLE}"
        )
    wanted = "no backend in TASKS" if alias is None else f"TASKS[{alias!r}]"
    verb = "is" if alias is None else "is not"
    path = f"{LanewayBackend.__module__}.{LanewayBackend.__qualname__}"
    return f"{wanted} {verb} Laneway's: set its BACKEND to {path!r}"
