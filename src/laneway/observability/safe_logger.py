"""A logger whose lines cannot fail: no job may be lost because the application's logging raises."""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import Any, Final

# Before the name of a field that the application's records have already.
PREFIX: Final = "laneway_"
# `logging` refuses these names too.
_RESERVED: Final = frozenset({"message", "asctime"})
# The kinds of errors reported already; a failing filter would repeat them with every line.
_reported: set[type[BaseException]] = set()


class SafeLogger(logging.LoggerAdapter[logging.Logger]):
    """Drops a line whose filter, factory or handler raises, and says so once on stderr.

    A field of `extra` that the application's record factory sets already gets a prefix.
    """

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name), {})

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        try:
            if self.logger.isEnabledFor(level):
                # The line is that of the caller, not of this file.
                kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
                self._write(level, msg, args, kwargs)
        except Exception as error:
            _report(self.logger.name, error)

    def _write(
        self, level: int, msg: object, args: tuple[object, ...], kwargs: dict[str, Any]
    ) -> None:
        kwargs["stacklevel"] += 1
        try:
            self.logger.log(level, msg, *args, **kwargs)
        except KeyError as error:
            extra = kwargs.get("extra")
            if not extra or "Attempt to overwrite" not in str(error):
                raise
            # Refused before any handler saw the line.
            kwargs["extra"] = _without_collisions(self.logger.name, level, extra)
            self.logger.log(level, msg, *args, **kwargs)


def field(record: logging.LogRecord, name: str) -> object:
    """The value of a field of a line by Laneway, under whichever name it has; None without."""
    values = vars(record)
    return values.get(PREFIX + name, values.get(name))


def _without_collisions(name: str, level: int, extra: dict[str, Any]) -> dict[str, Any]:
    record = logging.getLogRecordFactory()(name, level, "", 0, "", (), None)
    taken = _RESERVED | vars(record).keys()
    return {PREFIX + key if key in taken else key: value for key, value in extra.items()}


def _report(name: str, error: Exception) -> None:
    if type(error) in _reported:
        return
    _reported.add(type(error))
    # stderr may be closed, or None.
    with contextlib.suppress(Exception):
        kind = type(error).__name__
        sys.stderr.write(
            f"laneway: a line of the logger {name} was dropped: the application's logging raised"
            f" {kind}: {error}; further lines that fail with {kind} are dropped silently\n"
        )
