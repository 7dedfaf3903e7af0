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
    SchemaViolation,
)
from laneway.domain.suggestion import suggest
from laneway.domain.text import escape_text, json_path
from laneway.errors import InvalidInput

_MISSING: Final = ("missing", "missing_argument", "missing_keyword_only_argument")
_EXTRA: Final = ("extra_forbidden", "unexpected_keyword_argument")
_Problem = tuple[tuple[str | int, ...], str]


def _misspelt(found: Iterable[_Problem], known: Iterable[str]) -> _Problem | None:
    """The first unknown argument, with the known one that it is like; None if all are known.

    A misspelt name is also missing, and that is less helpful to say.
    """
    for path, rule in found:
        if rule == UNKNOWN and len(path) == 1:
            return path, f"{rule}{suggest(str(path[0]), known)}"
    return None


def from_pydantic(error: ValidationError, payload: object, known: Iterable[str]) -> InvalidInput:
    """The error about the first problem of a payload."""
    listed = error.errors(include_url=False, include_context=False, include_input=False)
    first = listed[0]
    if first["type"] in (*_MISSING, *_EXTRA):
        named = [(each["loc"], UNKNOWN) for each in listed if each["type"] in _EXTRA]
        if (found := _misspelt(named, known)) is not None:
            path, rule = found
            return InvalidInput(json_path("payload", path), _counted(rule, error.error_count()))
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
    path, rule = found[0].path, found[0].rule
    if rule in (REQUIRED, UNKNOWN):
        named = [(each.path, each.rule) for each in found]
        path, rule = _misspelt(named, known) or (path, rule)
    return InvalidInput(json_path("payload", path), _counted(rule, len(found)))
