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
        if (request := getattr(record, "request_id", None)) is not None:
            line["request_id"] = request
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    """One line each, with the id of the request it belongs to, if any."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        request = getattr(record, "request_id", None)
        line = super().formatMessage(record)
        return line if request is None else f"{line} request_id={request}"


def configure(settings: Settings) -> None:
    """Writes log lines to stderr; an application that set up logging at import is left alone."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    if settings.log_format == "json":
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(TextLines())
    root.addHandler(handler)
    logging.getLogger("laneway").setLevel(settings.log_level)
