"""Tells the frames of the user's code from those of Laneway and of libraries."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Final

from laneway.domain.text import visible

# A longer traceback is cut in the middle.
MAX_CHARACTERS: Final = 4000
_LANEWAY: Final = str(Path(__file__).parents[2]) + "/"
_STANDARD: Final = tuple(
    f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib") if sysconfig.get_path(name)
)
_INSTALLED: Final = re.compile(r"/(?:site|dist)-packages/([^/]+)")
_LIBRARY: Final = re.compile(r"/lib/python3\.\d+/")
_FRAME: Final = re.compile(r'^([ |]*)File "([^"]+)", line \d+')


def is_own(path: str, module: str) -> bool:
    """Whether a file belongs to the application that `module` is part of.

    The name of its package identifies an installed application.
    """
    if path.startswith(("<frozen ", "<string>")):
        # Imports, and what dataclasses generate.
        return False
    installed = _INSTALLED.search(path)
    if path.startswith(_LANEWAY):
        # Such as the handlers of the demo.
        return path.endswith("/" + module.replace(".", "/") + ".py")
    if installed is not None:
        return installed[1].removesuffix(".py") == module.partition(".")[0]
    return not path.startswith(_STANDARD)


def is_foreign(path: str) -> bool:
    """Whether a file is not part of Laneway or the standard library, on this host or another."""
    if path.startswith(("<frozen ", "<string>")):
        return False
    installed = _INSTALLED.search(path)
    if path.startswith(_LANEWAY) or (installed is not None and installed[1] == "laneway"):
        return "/laneway/demo/" in path
    return installed is not None or not (path.startswith(_STANDARD) or _LIBRARY.search(path))


def cut_traceback(text: str, module: str) -> str:
    """The traceback with the user's frames only; the last frame of an error that has none.

    Control characters are escaped and lines are indented: no error can forge a log line.
    """
    kept = keep_frames(text, lambda path: is_own(path, module))
    cut = "\n".join(f"    {visible(line)}" for line in kept if line.strip())
    if len(cut) <= MAX_CHARACTERS:
        return cut
    half = MAX_CHARACTERS // 2
    head, _, _ = cut[:half].rpartition("\n")
    _, _, tail = cut[-half:].partition("\n")
    return f"{head}\n    …\n{tail}"


def keep_frames(text: str, is_kept: Callable[[str], bool]) -> list[str]:
    """The lines of a traceback with the chosen frames; the last frame of an error without one."""
    kept: list[str] = []
    frames: list[tuple[bool, list[str]]] = []
    prefix = ""
    for line in text.splitlines():
        found = _FRAME.match(line)
        if found is not None:
            prefix = found[1]
            frames.append((is_kept(found[2]), [line]))
        elif frames and line.startswith((f"{prefix}  ", f"{prefix}[Previous line")):
            frames[-1][1].append(line)
        else:
            kept += _chosen(frames)
            frames = []
            kept.append(line)
    return kept + _chosen(frames)


def _chosen(frames: list[tuple[bool, list[str]]]) -> list[str]:
    own = [lines for is_users, lines in frames if is_users] or [lines for _, lines in frames[-1:]]
    return [line for lines in own for line in lines]
