"""manage.py laneway_worker: runs tasks until stopped by SIGTERM, SIGHUP or Ctrl-C."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from laneway.app.worker_process import run_worker
from laneway.cli.exits import ExitCode, exit_code
from laneway.errors import LanewayError
from laneway.integrations.django.worker import BACKEND_VARIABLE, REFERENCE, find_backend

_NUMBERS: Final = {
    "processes": "worker processes, restarted when they die",
    "concurrency": "tasks at once in each process",
    "threads": "threads of each process, for tasks that are plain functions",
    "children": 'child processes of each process, for handlers with isolation="process"',
    "slots": "tasks at once in each process, of all kinds together",
    "max-jobs": "stop after this many tasks",
    "max-jobs-per-child": "tasks after which a child process is replaced",
    "metrics-port": "serve metrics and health checks on this port",
}


class Command(BaseCommand):  # type: ignore[misc]
    """Run tasks."""

    help = "Run tasks until stopped by SIGTERM, SIGHUP or Ctrl-C."
    # A worker starts before its database, and waits for it.
    requires_system_checks = ("tasks",)
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--backend", help="the backend in TASKS, if several are Laneway's")
        parser.add_argument("--lanes", metavar="A,B", help="serve only these lanes")
        parser.add_argument("--name", help="the worker's name")
        parser.add_argument("--grace", type=float, help="seconds that tasks may take at a stop")
        for name, text in _NUMBERS.items():
            parser.add_argument(f"--{name}", type=int, metavar="N", help=text)

    def handle(self, **options: Any) -> None:
        try:
            backend = find_backend(options["backend"])
        except ImproperlyConfigured as error:
            raise CommandError(str(error), returncode=ExitCode.USAGE) from error
        # For this process and for those it starts.
        os.environ[BACKEND_VARIABLE] = backend.alias
        lanes = options["lanes"]
        names = ("name", "grace", *(name.replace("-", "_") for name in _NUMBERS))
        try:
            code = run_worker(
                REFERENCE,
                lanes=None if lanes is None else [each.strip() for each in lanes.split(",")],
                **{name: options[name] for name in names},
            )
        except LanewayError as error:
            # A login of Django's settings: the command must read them too.
            text = str(error).replace("`laneway ", "`manage.py laneway ")
            raise CommandError(text, returncode=exit_code(error)) from error
        if code:
            sys.exit(code)
