"""A check before an application opens its database; the pytest plugin sets one."""

from __future__ import annotations

from collections.abc import Callable

_checks: list[Callable[[object], None]] = []


def add(check: Callable[[object], None]) -> Callable[[], None]:
    """Call `check` with each application that is about to open its database; returns the undo."""
    _checks.append(check)
    return lambda: _checks.remove(check)


def check_open(app: object) -> None:
    """Raise if an application must not open its database now."""
    for check in _checks:
        check(app)
