"""The problem of a payload that its error names: the first, or a misspelt argument."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pydantic import ValidationError

from laneway.domain.payload_check import (
    MAX_ERRORS,
    REQUIRED,
    RULE_CHARS,
    UNKNOWN,
    Path,
    SchemaViolation,
)
from laneway.domain.suggestion import closest
from laneway.domain.text import escape_text, json_path
from laneway.errors import InvalidInput

_MISSING: Final = ("missing", "missing_argument", "missing_keyword_only_argument")
_EXTRA: Final = ("extra_forbidden", "unexpected_keyword_argument")
_Problem = tuple[Path, str]


def unknown_argument(name: str, known: Iterable[str], missing: Iterable[str]) -> tuple[str, int]:
    """The rule about an unknown argument and a missing one, and the number of problems it names."""
    near = closest(name, known)
    required = sorted(missing)
    if near is not None and near in required:
        return f"{UNKNOWN}; did you mean {near}, which is required?", 2
    suggested = "" if near is None else f"; did you mean {near}?"
    if required:
        return f"{UNKNOWN}; {required[0]} is required{suggested}", 2
    return f"{UNKNOWN}{suggested}", 1


def _misspelt(found: Iterable[_Problem], known: Iterable[str]) -> tuple[Path, str, int] | None:
    """The first unknown argument with its rule and the problems in it; None if all are known."""
    top = [(path, rule) for path, rule in found if len(path) == 1]
    missing = [str(path[0]) for path, rule in top if rule == REQUIRED]
    for path, rule in top:
        if rule == UNKNOWN:
            return path, *unknown_argument(str(path[0]), known, missing)
    return None


def from_pydantic(error: ValidationError, payload: object, known: Iterable[str]) -> InvalidInput:
    """The error about the first problem of a payload."""
    listed = error.errors(include_url=False, include_context=False, include_input=False)
    first = listed[0]
    if first["type"] in (*_MISSING, *_EXTRA):
        named = [
            (each["loc"], UNKNOWN if each["type"] in _EXTRA else REQUIRED)
            for each in listed
            if each["type"] in (*_MISSING, *_EXTRA)
        ]
        if (found := _misspelt(named, known)) is not None:
            path, rule, named_here = found
            left = error.error_count() - named_here + 1
            return InvalidInput(json_path("payload", path), _counted(rule, left))
    missing = first["type"] in _MISSING
    keys: list[object] = []
    node = payload
    # pydantic also names the union member it tried; keep only steps that the payload has.
    for i, key in enumerate(first["loc"]):
        if _has(node, key):
            node = node[key]  # type: ignore[index]
        elif not (missing and i == len(first["loc"]) - 1):
            continue
        keys.append(key)
    if missing:
        rule = REQUIRED
    elif first["type"] in _EXTRA:
        rule = UNKNOWN
    else:
        rule = escape_text(first["msg"].replace("Input should be", "must be"))[:RULE_CHARS]
    return InvalidInput(json_path("payload", keys), _counted(rule, error.error_count()))


def _has(node: object, key: object) -> bool:
    if isinstance(node, dict):
        return key in node
    return isinstance(node, list) and isinstance(key, int) and 0 <= key < len(node)


def _counted(rule: str, problems: int) -> str:
    """The rule, and the number of other problems."""
    if problems < 2:
        return rule
    more = f"at least {problems - 1}" if problems >= MAX_ERRORS else f"{problems - 1}"
    noun = "problem" if problems == 2 else "problems"
    return f"{rule} (and {more} more {noun})"


def from_schema(found: Sequence[SchemaViolation], known: Iterable[str]) -> InvalidInput:
    """The error about the first violation of a schema by a payload."""
    path, rule, named_here = found[0].path, found[0].rule, 1
    if rule in (REQUIRED, UNKNOWN):
        named = [(each.path, each.rule) for each in found]
        path, rule, named_here = _misspelt(named, known) or (path, rule, named_here)
    return InvalidInput(json_path("payload", path), _counted(rule, len(found) - named_here + 1))
