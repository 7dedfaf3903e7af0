"""Compress the text files below a directory, for the server: `python scripts/compress.py DIR`."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Final

TEXTS: Final = {".css", ".js", ".json", ".md", ".svg"}
# Smaller files fit into one packet.
LEAST_BYTES: Final = 1024


def compress(folder: Path) -> None:
    """Write `NAME.gz` beside every text; the same input always gives the same file."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in TEXTS or path.stat().st_size < LEAST_BYTES:
            continue
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    compress(Path(sys.argv[1]))
