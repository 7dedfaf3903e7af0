"""A PostgreSQL whose clock jumps while it runs, with Debian's libfaketime.

Only the wall clock is faked: timers and time-outs continue, as when a real clock is set.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from laneway.embedded.account import new_account
from laneway.embedded.binaries import binaries_for, find_binaries
from laneway.embedded.postgres import EmbeddedPostgres

PACKAGE = "libfaketime"
LIBRARY = "faketime/libfaketimeMT.so.1"


class FakeClock:
    """The clock of a server that is started with `binaries`."""

    def __init__(self, home: Path) -> None:
        self._file = home / "clock"
        self._offset = timedelta(0)
        self.jump(timedelta(0))
        account = new_account()
        real = binaries_for(account, find_binaries()).directory
        self.binaries = home / "bin"
        self.binaries.mkdir(mode=0o755)
        for program in real.iterdir():
            (self.binaries / program.name).symlink_to(program)
        start = self.binaries / "pg_ctl"
        start.unlink()
        environment = {
            "LD_PRELOAD": str(_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DISABLE_SHM": "1",
            "NO_FAKE_STAT": "1",
        }
        exports = " ".join(f"{name}={value}" for name, value in environment.items())
        start.write_text(f'#!/bin/sh\nexport {exports}\nexec {real / "pg_ctl"} "$@"\n')
        start.chmod(0o755)

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + self._offset

    def set(self, to: datetime) -> None:
        """Set the clock; it continues from there."""
        self.jump(to - self.now)

    def jump(self, by: timedelta) -> None:
        self._offset += by
        new = self._file.with_suffix(".new")
        new.write_text(f"{self._offset.total_seconds():+.6f}\n")
        new.chmod(0o644)
        new.rename(self._file)

    @contextlib.contextmanager
    def serving(self, data_dir: Path, settings: Mapping[str, str]) -> Iterator[EmbeddedPostgres]:
        """The server of a data directory, with this clock."""
        with EmbeddedPostgres(data_dir, settings=settings, binaries=self.binaries) as postgres:
            yield postgres


def _library() -> Path:
    for directory in ("/usr/lib", "/usr/lib64"):
        for found in Path(directory).glob(f"*/{LIBRARY}"):
            return Path(os.path.realpath(found))
    raise FileNotFoundError(
        f"{LIBRARY} is not installed: install the Debian package {PACKAGE}, as root:"
        f" apt-get install {PACKAGE}"
    )
