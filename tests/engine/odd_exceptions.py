"""Exceptions that harm the code that reads them, by name."""

from __future__ import annotations

import asyncio
from typing import Any


class _Meta(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise SystemExit("no name")


class Exits(Exception):
    """An exception whose every attribute ends the process."""

    def __str__(self) -> str:
        raise SystemExit("no text")

    __repr__ = __str__


class Cancels(Exception):
    def __str__(self) -> str:
        raise asyncio.CancelledError


class Nameless(Exception, metaclass=_Meta):
    pass


class Classless(Exception):
    @property
    def __class__(self) -> Any:
        raise KeyboardInterrupt

    @__class__.setter
    def __class__(self, value: Any) -> None: ...


class Caused(Exception):
    @property
    def __cause__(self) -> Any:  # type: ignore[override]
        raise SystemExit("no cause")

    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise SystemExit("no traceback")


class Grouped(BaseExceptionGroup[BaseException]):
    @property
    def exceptions(self) -> Any:
        raise SystemExit("no parts")


def _chained(count: int) -> Exception:
    error = ValueError("first")
    for n in range(count):
        outer = ValueError(str(n))
        outer.__cause__ = error
        error = outer
    return error


ODD: dict[str, Any] = {
    "GeneratorExit": GeneratorExit,
    "SystemExit": SystemExit,
    "KeyboardInterrupt": KeyboardInterrupt,
    "CancelledError": asyncio.CancelledError,
    "BaseExceptionGroup": lambda: BaseExceptionGroup("several", [SystemExit(), GeneratorExit()]),
    "StopAsyncIteration": StopAsyncIteration,
    "text exits": Exits,
    "text cancels": Cancels,
    "name exits": Nameless,
    "class exits": Classless,
    "cause exits": Caused,
    "parts exit": lambda: Grouped("several", [ValueError()]),
    "huge text": lambda: ValueError("x" * 20_000_000),
    "huge group": lambda: ExceptionGroup("many", [ValueError(n) for n in range(50_000)]),
    "long chain": lambda: _chained(50_000),
}
