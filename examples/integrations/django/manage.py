"""A shop that sends receipts by tasks: `python manage.py migrate`, `… laneway db migrate`,
`… runserver` and, elsewhere, `… laneway_worker`."""

import os
import sys

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
execute_from_command_line(sys.argv)
