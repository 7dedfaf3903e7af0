"""Applications that do not take their database from LANEWAY_DATABASE_URL."""

from __future__ import annotations

import os

from laneway import Laneway

first = Laneway("postgresql://real/shop")
named = Laneway(database_url="postgresql://real/shop")
# The same value as the variable that LANEWAY_DATABASE_URL would replace.
variable = Laneway(os.environ.get("DATABASE_URL", "postgresql://real/shop"))
