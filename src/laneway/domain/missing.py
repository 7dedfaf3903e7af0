"""Messages about a name that does not exist: similar names, and how to create it."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote
from typing import Final

from laneway.domain.suggestion import suggest
from laneway.domain.text import visible
from laneway.errors import NotFound

MAX_NAMES: Final = 5
_CREATED_BY: Final = {
    "lane": "laneway lanes create {}",
    "limit": "laneway limits set {} --max-concurrent N",
    "schedule": "laneway schedules set {} --type TYPE --cron CRON",
    "webhook": "laneway webhooks set {} --url URL",
    "role": "laneway roles create {} --permissions PERMISSIONS",
    "principal": "laneway principals create {}",
    "worker": "laneway worker APP --name {}",
}


def missing(kind: str, name: str) -> NotFound:
    """The error about a missing object; callers who may see the names get a `hint` too."""
    return NotFound(f"no {kind} {name}", kind=kind, name=name)


def hint(kind: str, name: str, known: Iterable[str]) -> str:
    """The most similar name, else five that exist; and the command that creates this one."""
    names = sorted(set(known))
    create = creation(kind, name)
    if near := suggest(name, names):
        return f"{visible(near.removeprefix('; '))} {create[0].upper()}{create[1:]}"
    some = names[:MAX_NAMES]
    more = f" and {len(names) - len(some)} more" if len(names) > len(some) else ""
    exist = f"existing: {', '.join(some)}{more}" if some else "none exists yet"
    return f"{visible(exist)}; {create}"


def creation(kind: str, name: str) -> str:
    """The command that creates it; safe for all readers, because it names nothing else."""
    verb = "start" if kind == "worker" else "create"
    return f"to {verb} it: `{_CREATED_BY[kind].format(quote(visible(name)))}`"
