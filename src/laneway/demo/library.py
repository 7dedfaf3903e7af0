"""The application of the long-running demo: all sample handlers.

`laneway worker laneway.demo.library:lw` serves it. The handlers are in app.py, digests.py,
documents.py and indexes.py.
"""

from __future__ import annotations

from laneway.demo import digests, documents, indexes
from laneway.demo.app import lw

__all__ = ["digests", "documents", "indexes", "lw"]
