"""Settings of a PostgreSQL server that harm jobs, and how to fix each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

LEAST_JIT_COST: Final = 100_000
SHORTEST_MS: Final = 5_000
SHORTEST_IDLE_MS: Final = 60_000
FEWEST_CONNECTIONS: Final = 20
SMALLEST_BUFFERS: Final = 16 * 1024**2 // 8192
_UNITS_MS: Final = {"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)")
_RELOAD: Final = " select pg_reload_conf();"


class Rule(NamedTuple):
    """One setting: when it is harmful, its effect, and the assignment that fixes it."""

    name: str
    is_harmful: Callable[[str], bool]
    effect: str
    assignment: str
    # Without a pooler, Laneway's sessions set it themselves.
    only_pooled: bool = False
    needs_restart: bool = False

    def cure(self, source: str, role: str, database: str) -> str:
        """The step that changes the setting where it was set; names are quoted."""
        match source:
            case "user":
                return f"alter role {role} set {self.assignment};"
            case "database":
                return f"alter database {database} set {self.assignment};"
            case "database user":
                return f"alter role {role} in database {database} set {self.assignment};"
            case "client" | "environment variable":
                return f"remove {self.name} from LANEWAY_DATABASE_URL or PGOPTIONS."
            case "command line":
                return f"start PostgreSQL without {self.name} on its command line."
        then = " restart PostgreSQL." if self.needs_restart else _RELOAD
        return f"alter system set {self.assignment};{then}"


def _is(value: str) -> Callable[[str], bool]:
    return lambda found: found == value


def _is_short(found: str) -> bool:
    return 0 < int(found) < SHORTEST_MS


def _shadows_pg_catalog(found: str) -> bool:
    schemas = [part.strip().strip('"') for part in found.split(",")]
    return "pg_catalog" in schemas and schemas[0] != "pg_catalog"


def _set_to(
    name: str,
    value: str,
    is_harmful: Callable[[str], bool],
    effect: str,
    *,
    only_pooled: bool = False,
    needs_restart: bool = False,
) -> Rule:
    return Rule(name, is_harmful, effect, f"{name} = {value}", only_pooled, needs_restart)


_LOST: Final = "a crash of the server may lose acknowledged jobs"
_SHOWN: Final = "payloads are written to the log of the server"
RULES: Final = (
    _set_to("fsync", "on", _is("off"), _LOST),
    _set_to("full_page_writes", "on", _is("off"), _LOST),
    _set_to("synchronous_commit", "on", _is("off"), _LOST),
    _set_to("autovacuum", "on", _is("off"), "dead rows accumulate and everything gets slower"),
    _set_to("track_counts", "on", _is("off"), "autovacuum does not run: dead rows accumulate"),
    _set_to(
        "idle_session_timeout", "0", lambda found: 0 < int(found) < SHORTEST_IDLE_MS,
        "idle connections of workers and servers are closed again and again", only_pooled=True,
    ),
    _set_to(
        "max_connections", "100", lambda found: int(found) < FEWEST_CONNECTIONS,
        "a few workers and servers use up all connections", needs_restart=True,
    ),
    _set_to(
        "shared_buffers", "'128MB'", lambda found: int(found) < SMALLEST_BUFFERS,
        "queues are read from disk instead of memory", needs_restart=True,
    ),
    _set_to("log_statement", "ddl", _is("all"), _SHOWN),
    _set_to("log_min_duration_statement", "1000", _is("0"), _SHOWN),
    _set_to(
        "session_replication_role", "origin", _is("replica"),
        "triggers do not run: no history, no wake-ups",
    ),
    _set_to("transaction_timeout", "0", _is_short, "longer transactions of Laneway are aborted"),
    _set_to(
        "statement_timeout", "'30s'", _is_short, "longer statements of Laneway are aborted",
        only_pooled=True,
    ),
    _set_to(
        "lock_timeout", "0", _is_short, "statements that wait for a lock fail", only_pooled=True
    ),
    _set_to(
        "default_transaction_isolation", "'read committed'",
        lambda found: found != "read committed", "claims are refused", only_pooled=True,
    ),
    Rule(
        "jit_above_cost", lambda found: 0 <= float(found) < LEAST_JIT_COST,
        "short statements are compiled, which takes a second each",
        "jit = off", only_pooled=True,
    ),
    _set_to(
        "search_path", '"$user", public', _shadows_pg_catalog,
        "functions of that schema replace those of PostgreSQL", only_pooled=True,
    ),
)  # fmt: skip
NAMES: Final = tuple(rule.name for rule in RULES)


def harmful(found: Mapping[str, str], *, is_pooled: bool) -> list[Rule]:
    """The rules that these settings break."""
    return [
        rule
        for rule in RULES
        if rule.name in found
        and rule.is_harmful(found[rule.name])
        and (is_pooled or not rule.only_pooled)
    ]


def quoted(name: str) -> str:
    """A name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def in_units(value: str) -> str:
    """A value as `alter role` takes it, in the words and units of pg_settings."""
    if found := _DURATION.fullmatch(value.strip()):
        return str(int(float(found[1]) * _UNITS_MS[found[2]]))
    return {"false": "off", "no": "off"}.get(value.lower(), value.lower())
