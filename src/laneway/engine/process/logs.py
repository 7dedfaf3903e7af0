"""Log lines as text or JSON, unless the application configures logging itself.

Each line carries the request, attempt and trace that it belongs to. Passwords and tokens are
redacted, also in lines of other libraries.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from laneway.config.settings import Settings
from laneway.domain.approval import analysed_type
from laneway.domain.redaction import redact
from laneway.engine.run.attempt import current_run
from laneway.observability import tracing
from laneway.observability.safe_logger import field

# The logger of the lines about jobs that start and end.
JOBS: Final = "laneway.jobs"
# Fields that a line about a job brings along, see job_log.py; text lines say them in their message.
_OWN_FIELDS: Final = (
    "job_id", "attempt", "job_type", "lane", "slots", "reason", "duration", "error_type",
    "exit_code",
)  # fmt: skip


def log_fields(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    """The request, attempt and trace that the logging code belongs to."""
    if (request := getattr(record, "request_id", None)) is not None:
        yield "request_id", request
    if (around := current_run.get()) is not None:
        run, worker = around
        yield "job_id", str(run.claim.job_id)
        yield "attempt", run.claim.attempt
        yield "job_type", analysed_type(run.handler.job_type)
        yield "lane", run.lane
        yield "worker", worker
    if (trace_id := tracing.trace_id()) is not None:
        yield "trace_id", trace_id


def _own_fields(record: logging.LogRecord) -> dict[str, object]:
    """The fields of a line by Laneway; another library's may hold anything under these names."""
    if record.name.partition(".")[0] != "laneway":
        return {}
    found = {name: field(record, name) for name in _OWN_FIELDS}
    return {name: _shown(value) for name, value in found.items() if value is not None}


def _shown(value: object) -> object:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number else redact(str(value))


class JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        traceback = getattr(record, "traceback", None)
        if isinstance(traceback, str) and traceback:
            message = message.removesuffix(traceback)
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            "message": redact(message),
            **_own_fields(record),
            **dict(log_fields(record)),
        }
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info))
        elif isinstance(traceback, str) and traceback:
            line["error"] = redact(traceback.strip("\n"))
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    """One text line each, with its fields at the end."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={value}" for name, value in log_fields(record))
        return super().formatMessage(record) + fields

    def format(self, record: logging.LogRecord) -> str:
        if record.exc_info or record.exc_text or record.stack_info:
            return redact(super().format(record))
        # Without the time and the fields, which hold no secrets: requests write many short lines.
        record.message = redact(record.getMessage())
        record.asctime = self.formatTime(record)
        return self.formatMessage(record)


def configure(settings: Settings) -> None:
    """Log to stderr, unless the application set up logging at import.

    A level that was asked for applies to Laneway's lines in any case.
    """
    redact.remember([settings.database_url, settings.listen_dsn])
    is_ours = _write(settings.log_format, settings.log_level)
    if not is_ours and "log_level" in settings.model_fields_set:
        logging.getLogger("laneway").setLevel(settings.log_level)
    if settings.quiet:
        logging.getLogger(JOBS).setLevel(logging.WARNING)


def configure_child(form: str | None, level: str) -> None:
    """Log as the worker does, unless the application set up logging at import."""
    if form is not None:
        _write(form, level)


def log_format() -> str | None:
    """The log format of this process; None if the application configured logging."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, (JsonLines, TextLines)):
            return "json" if isinstance(handler.formatter, JsonLines) else "text"
    return None


def _write(form: str, level: str) -> bool:
    """Log to stderr; return False if the application configured logging."""
    root = logging.getLogger()
    if root.handlers:
        return False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root.addHandler(handler)
    # For the application's loggers too, and for Laneway's even if the application set one.
    root.setLevel(level)
    logging.getLogger("laneway").setLevel(level)
    return True
