"""Opens a link in the user's browser, where one can be expected to appear on their screen."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Final

_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY")
# The user would not see a browser on another machine or in a build.
_ELSEWHERE: Final = ("CI", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")
# In another process: some browsers write to the terminal or block, and a text browser would take it
# over; without input, it ends.
_OPEN: Final = "import sys, webbrowser; webbrowser.open(sys.stdin.read())"
_LONGEST_S: Final = 60.0


def can_open(
    environ: Mapping[str, str] = os.environ,
    platform: str = sys.platform,
    *,
    is_terminal: bool | None = None,
) -> bool:
    """Whether a person sits at this machine's screen: a display and a terminal, no SSH, no CI."""
    if is_terminal is None:
        is_terminal = sys.stdout is not None and sys.stdout.isatty()
    has_display = platform == "darwin" or any(environ.get(name) for name in _DISPLAYS)
    return is_terminal and has_display and not any(environ.get(name) for name in _ELSEWHERE)


def open_link(url: str) -> threading.Thread | None:
    """Open the link in the background, if `can_open`. Nothing is printed and no error is raised."""
    if not can_open():
        return None
    opening = threading.Thread(target=_open, args=(url,), name="browser", daemon=True)
    opening.start()
    return opening


def _open(url: str) -> None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            [sys.executable, "-c", _OPEN],
            input=url.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Ctrl-C ends Laneway, not the browser.
            start_new_session=True,
            timeout=_LONGEST_S,
            check=False,
        )
