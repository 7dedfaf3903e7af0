"""Log lines of a process, as text or as JSON, unless the application has its own way.

Each says what it belongs to: the request, the attempt of a job, the trace. Passwords and tokens
are struck out, whoever wrote them.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

from laneway.config.settings import Settings
from laneway.domain.redaction import redact
from laneway.engine.run.attempt import current_run
from laneway.observability import tracing


def log_fields(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    """What a line belongs to: the request, the attempt, the trace that its code is part of."""
    if (request := getattr(record, "request_id", None)) is not None:
        yield "request_id", request
    if (around := current_run.get()) is not None:
        run, worker = around
        yield "job_id", str(run.claim.job_id)
        yield "attempt", run.claim.attempt
        yield "job_type", run.handler.job_type.lstrip("\x01")
        yield "lane", run.lane
        yield "worker", worker
    if (trace_id := tracing.trace_id()) is not None:
        yield "trace_id", trace_id


class JsonLines(logging.Formatter):
    """One object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            "message": redact(record.getMessage()),
            **dict(log_fields(record)),
        }
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    """One line each, with what it belongs to at its end."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        told = "".join(f" {name}={value}" for name, value in log_fields(record))
        return super().formatMessage(record) + told

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def configure(settings: Settings) -> None:
    """Writes log lines to stderr; an application that set up logging at import is left alone."""
    redact.remember([settings.database_url, settings.listen_dsn])
    _write(settings.log_format, settings.log_level)


def configure_child(form: str | None, level: str) -> None:
    """In a child process whose application has no way of its own: as its worker does."""
    if form is not None:
        _write(form, level)


def form_in_use() -> str | None:
    """How this process writes its lines; None: the application's own way."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, (JsonLines, TextLines)):
            return "json" if isinstance(handler.formatter, JsonLines) else "text"
    return None


def _write(form: str, level: str) -> None:
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root.addHandler(handler)
    logging.getLogger("laneway").setLevel(level)
