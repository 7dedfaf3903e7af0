"""manage.py laneway …: the command `laneway` on the database of the backend."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand

from laneway.integrations.django.worker import BACKEND_VARIABLE, find_backend


class Command(BaseCommand):  # type: ignore[misc]
    """Run any command of Laneway, such as `manage.py laneway db migrate`."""

    help = "Run a command of Laneway on the database of the tasks: manage.py laneway db migrate"

    def run_from_argv(self, argv: list[str]) -> None:
        # All options are those of the command below, not Django's.
        from laneway.cli.exits import ExitCode
        from laneway.cli.main import main

        try:
            backend = find_backend(os.environ.get(BACKEND_VARIABLE))
            os.environ["LANEWAY_DATABASE_URL"] = backend.lw.settings.conninfo or ""
        except ImproperlyConfigured as error:
            self.stderr.write(f"laneway: {error}")
            sys.exit(ExitCode.USAGE)
        sys.argv = ["laneway", *argv[2:]]
        main()

    def handle(self, *args: Any, **options: Any) -> None:
        """Run it from code: call_command("laneway", "db", "migrate")."""
        self.run_from_argv(["manage.py", "laneway", *args])
