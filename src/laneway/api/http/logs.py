"""Adds the request's id to log records of a server."""

from __future__ import annotations

import logging

from laneway.api.http.middleware import request_id


class RequestIds(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "request_id"):
            record.request_id = request_id.get()
        return True


def mark_requests() -> None:
    """Add the filter to every log handler of this process."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(RequestIds())
