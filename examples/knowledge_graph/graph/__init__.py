"""A knowledge graph whose work runs as jobs: `laneway worker graph:lw`."""

from . import ingestion, maintenance, system
from .app import lw

__all__ = ["ingestion", "lw", "maintenance", "system"]
