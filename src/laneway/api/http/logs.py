"""Log lines of a server carry the id of the request they belong to."""

from __future__ import annotations

import logging

from laneway.api.http.middleware import request_id


class RequestIds(logging.Filter):
    """Puts the request's id on each log record."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "request_id"):
            record.request_id = request_id.get()
        return True


def mark_requests() -> None:
    """Marks what every handler of this process writes."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(RequestIds())
