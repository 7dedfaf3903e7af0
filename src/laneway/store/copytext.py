"""COPY's text format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

NULL: Final = "\\N"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})

# The data is UTF-8, whatever the encoding of the caller's connection.
JOBS: Final = (
    "copy laneway.jobs (seq, id, job_type, workspace, payload, priority, max_retries, run_at, "
    "unique_key, tags, created_at, created_by, traceparent, concurrency_key) "
    "from stdin (encoding 'UTF8')"
)
READY: Final = "copy laneway.ready (seq, job_type, rank, ready_at) from stdin (encoding 'UTF8')"
DELAYED: Final = "copy laneway.delayed (seq, job_type, rank, run_at) from stdin (encoding 'UTF8')"


def escape(text: str) -> str:
    """Escapes a text for a column."""
    if "\\" in text or "\n" in text or "\t" in text or "\r" in text:
        return text.translate(_ESCAPES)
    return text


def column(value: str | int | None) -> str:
    """Encodes a value or null for a column."""
    return NULL if value is None else escape(str(value))


def array_literal(texts: Sequence[str]) -> str | None:
    """PostgreSQL's text form of a text[]; None for no texts, as in laneway.submit."""
    if not texts:
        return None
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return '{"' + '","'.join(quoted) + '"}'
