"""Log lines of a worker process, as text or as JSON, unless the application has its own way."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from laneway.config import Settings


class JsonLines(logging.Formatter):
    """One object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def configure(settings: Settings) -> None:
    """Writes log lines to stderr; an application that set up logging at import is left alone."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    if settings.log_format == "json":
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root.addHandler(handler)
    logging.getLogger("laneway").setLevel(settings.log_level)
