"""Settings of a PostgreSQL server that hurt jobs, and what mends each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

LEAST_JIT_COST: Final = 100_000
SHORTEST_MS: Final = 5_000


class Rule(NamedTuple):
    """One setting: when it hurts, how, and the SQL that mends it."""

    name: str
    hurts: Callable[[str], bool]
    effect: str
    cure: str
    # Where no pooler stands between, our own sessions set it.
    only_pooled: bool = False


def _is(value: str) -> Callable[[str], bool]:
    return lambda found: found == value


def _is_short(found: str) -> bool:
    return 0 < int(found) < SHORTEST_MS


def _is_off_postgresql(found: str) -> bool:
    schemas = [part.strip().strip('"') for part in found.split(",")]
    return schemas.index("pg_catalog") > 0 if "pg_catalog" in schemas else False


_LOST = "a crash of the server loses jobs that were acknowledged"
_EVERYBODY = "alter system set {name} = {value}; select pg_reload_conf();"
_ROLE = "alter role … set {name} = {value};"
RULES: Final = (
    Rule("fsync", _is("off"), _LOST, _EVERYBODY.format(name="fsync", value="on")),
    Rule(
        "full_page_writes", _is("off"), _LOST,
        _EVERYBODY.format(name="full_page_writes", value="on"),
    ),
    Rule(
        "synchronous_commit", _is("off"), _LOST,
        _ROLE.format(name="synchronous_commit", value="on"),
    ),
    Rule(
        "autovacuum", _is("off"), "dead rows pile up and everything gets slower",
        _EVERYBODY.format(name="autovacuum", value="on"),
    ),
    Rule(
        "track_counts", _is("off"), "autovacuum does not run, dead rows pile up",
        _EVERYBODY.format(name="track_counts", value="on"),
    ),
    Rule(
        "log_statement", _is("all"), "payloads go to the log of the server",
        _EVERYBODY.format(name="log_statement", value="ddl"),
    ),
    Rule(
        "log_min_duration_statement", _is("0"), "payloads go to the log of the server",
        _EVERYBODY.format(name="log_min_duration_statement", value="1000"),
    ),
    Rule(
        "session_replication_role", _is("replica"), "triggers do not run: no history, no wake-ups",
        _ROLE.format(name="session_replication_role", value="origin"),
    ),
    Rule(
        "transaction_timeout", _is_short, "longer work of Laneway is broken off",
        _ROLE.format(name="transaction_timeout", value="0"),
    ),
    Rule(
        "statement_timeout", _is_short, "longer statements of Laneway are broken off",
        _ROLE.format(name="statement_timeout", value="'30s'"), only_pooled=True,
    ),
    Rule(
        "lock_timeout", _is_short, "statements that wait for a lock fail",
        _ROLE.format(name="lock_timeout", value="0"), only_pooled=True,
    ),
    Rule(
        "default_transaction_isolation", lambda found: found != "read committed",
        "claims are refused",
        _ROLE.format(name="default_transaction_isolation", value="'read committed'"),
        only_pooled=True,
    ),
    Rule(
        "jit_above_cost", lambda found: 0 <= float(found) < LEAST_JIT_COST,
        "short statements are compiled, which takes a second each",
        _ROLE.format(name="jit", value="off"), only_pooled=True,
    ),
    Rule(
        "search_path", _is_off_postgresql, "functions of that schema replace those of PostgreSQL",
        _ROLE.format(name="search_path", value='"$user", public'), only_pooled=True,
    ),
)  # fmt: skip
NAMES: Final = tuple(rule.name for rule in RULES)


def hurting(found: Mapping[str, str], *, is_pooled: bool) -> list[Rule]:
    """The rules that these settings break."""
    return [
        rule
        for rule in RULES
        if rule.name in found
        and rule.hurts(found[rule.name])
        and (is_pooled or not rule.only_pooled)
    ]
