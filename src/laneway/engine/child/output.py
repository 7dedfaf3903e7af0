"""Copies stdout and stderr of a child process to the log of its job and to the worker's stderr.

The worker reads the pipe, not the child, so that the last lines before a crash are not lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable
from typing import Final, cast

from laneway import forks
from laneway.domain.redaction import redact
from laneway.domain.text import escape_text
from laneway.engine.process.logs import log_format
from laneway.engine.run.handler_channel import LONGEST_LINE

# Lines stored with one attempt; the worker's stderr gets all of them.
MAX_LINES: Final = 1000
MARK: Final = b"\0laneway "


def mark(number: int) -> bytes:
    """The line with which a child marks the end of a job's output."""
    return b"%b%d\n" % (MARK, number)


class ChildOutput(asyncio.Protocol):
    """Reads one pipe line by line until its other end is closed."""

    def __init__(self) -> None:
        self._transport: asyncio.ReadTransport | None = None
        self._rest = b""
        self._is_cut = False
        self._kept = 0
        self._job_id = ""
        self._keep: Callable[[str], None] | None = None
        self._marked = 0
        self._changed = asyncio.Event()
        self._is_ended = False
        self._fds: forks.Fds | None = None

    @classmethod
    async def open(cls) -> tuple[ChildOutput, int]:
        """Open a pipe; return its reader, and the end to pass to the child and then close."""
        ours, theirs = os.pipe()
        try:
            file = os.fdopen(ours, "rb", 0)
            _, output = await asyncio.get_running_loop().connect_read_pipe(cls, file)
        except BaseException:
            os.close(theirs)
            raise
        output._fds = forks.Fds(ours)
        return output, theirs

    # Jobs ---------------------------------------------------------------------------------------

    def begin(self, job_id: str, keep: Callable[[str], None]) -> None:
        """Assign the following lines to this job."""
        self._job_id, self._keep, self._kept = job_id, keep, 0

    async def complete(self, number: int, within_s: float) -> None:
        """Wait until the job's output is read, at most `within_s`; then end the job."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._marked < number and not self._is_ended:
                    self._changed.clear()
                    await self._changed.wait()
        if self._rest:
            self._line(self._rest)
            self._rest = b""
        self._job_id, self._keep = "", None

    def close(self) -> None:
        if self._fds is not None:
            self._fds.let_go()
        if self._transport is not None:
            self._transport.close()

    # Reading ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.ReadTransport, transport)

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            # The last line before a mark may lack a line end.
            text, is_mark, number = line.partition(MARK)
            if self._is_cut:
                # The rest of a long line whose beginning was shown.
                self._is_cut = False
            elif text or not is_mark:
                self._line(text)
            if is_mark:
                self._mark_read(number)
        if len(self._rest) > LONGEST_LINE:
            if not self._is_cut:
                self._line(self._rest)
            self._rest, self._is_cut = b"", True

    def connection_lost(self, error: Exception | None) -> None:
        self._is_ended = True
        self._changed.set()

    def _mark_read(self, number: bytes) -> None:
        with contextlib.suppress(ValueError):
            self._marked = max(self._marked, int(number))
            self._changed.set()

    def _line(self, line: bytes) -> None:
        text = escape_text(line.decode(errors="replace").rstrip("\r"))
        if len(text) > LONGEST_LINE:
            text = text[:LONGEST_LINE] + " …"
        self._show(text)
        if self._keep is None:
            return
        self._kept += 1
        if self._kept <= MAX_LINES:
            self._keep(text)
        elif self._kept == MAX_LINES + 1:
            self._keep(f"more than {MAX_LINES:,} lines of output: the rest is not kept here")

    def _show(self, text: str) -> None:
        """Write to stderr with the job id, unless the line already contains it."""
        text = redact(text)
        if self._job_id and self._job_id not in text:
            if log_format() == "json":
                text = json.dumps({"message": text, "job_id": self._job_id})
            else:
                text = f"{text} job_id={self._job_id}"
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
