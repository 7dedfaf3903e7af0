"""Settings of a PostgreSQL server that harm jobs, and how to fix each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

LEAST_JIT_COST: Final = 100_000
SHORTEST_MS: Final = 5_000
SHORTEST_IDLE_MS: Final = 60_000
FEWEST_CONNECTIONS: Final = 20
SMALLEST_BUFFERS: Final = 16 * 1024**2 // 8192
# Stands for the database role in a cure.
ROLE: Final = "{role}"


class Rule(NamedTuple):
    """One setting: when it is harmful, its effect, and the SQL that fixes it."""

    name: str
    is_harmful: Callable[[str], bool]
    effect: str
    cure: str
    # Without a pooler, Laneway's sessions set it themselves.
    only_pooled: bool = False


def _is(value: str) -> Callable[[str], bool]:
    return lambda found: found == value


def _is_short(found: str) -> bool:
    return 0 < int(found) < SHORTEST_MS


def _shadows_pg_catalog(found: str) -> bool:
    schemas = [part.strip().strip('"') for part in found.split(",")]
    return "pg_catalog" in schemas and schemas[0] != "pg_catalog"


def _of_server(name: str, value: str, is_harmful: Callable[[str], bool], effect: str) -> Rule:
    """A setting that the administrator of the server changes."""
    cure = f"alter system set {name} = {value}; select pg_reload_conf();"
    return Rule(name, is_harmful, effect, cure)


def _of_role(
    name: str,
    value: str,
    is_harmful: Callable[[str], bool],
    effect: str,
    *,
    only_pooled: bool = False,
) -> Rule:
    """A setting that the database role may have."""
    return Rule(name, is_harmful, effect, f"alter role {ROLE} set {name} = {value};", only_pooled)


_LOST: Final = "a crash of the server may lose acknowledged jobs"
_SHOWN: Final = "payloads are written to the log of the server"
RULES: Final = (
    _of_server("fsync", "on", _is("off"), _LOST),
    _of_server("full_page_writes", "on", _is("off"), _LOST),
    _of_role("synchronous_commit", "on", _is("off"), _LOST),
    _of_server("autovacuum", "on", _is("off"), "dead rows accumulate and everything gets slower"),
    _of_server("track_counts", "on", _is("off"), "autovacuum does not run: dead rows accumulate"),
    _of_role(
        "idle_session_timeout", "0", lambda found: 0 < int(found) < SHORTEST_IDLE_MS,
        "idle connections of workers and servers are closed again and again", only_pooled=True,
    ),
    Rule(
        "max_connections", lambda found: int(found) < FEWEST_CONNECTIONS,
        "a few workers and servers use up all connections",
        "alter system set max_connections = 100; restart PostgreSQL.",
    ),
    Rule(
        "shared_buffers", lambda found: int(found) < SMALLEST_BUFFERS,
        "queues are read from disk instead of memory",
        "alter system set shared_buffers = '128MB'; restart PostgreSQL.",
    ),
    _of_server("log_statement", "ddl", _is("all"), _SHOWN),
    _of_server("log_min_duration_statement", "1000", _is("0"), _SHOWN),
    _of_role(
        "session_replication_role", "origin", _is("replica"),
        "triggers do not run: no history, no wake-ups",
    ),
    _of_role("transaction_timeout", "0", _is_short, "longer transactions of Laneway are aborted"),
    _of_role(
        "statement_timeout", "'30s'", _is_short, "longer statements of Laneway are aborted",
        only_pooled=True,
    ),
    _of_role(
        "lock_timeout", "0", _is_short, "statements that wait for a lock fail", only_pooled=True
    ),
    _of_role(
        "default_transaction_isolation", "'read committed'",
        lambda found: found != "read committed", "claims are refused", only_pooled=True,
    ),
    Rule(
        "jit_above_cost", lambda found: 0 <= float(found) < LEAST_JIT_COST,
        "short statements are compiled, which takes a second each",
        f"alter role {ROLE} set jit = off;", only_pooled=True,
    ),
    _of_role(
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
