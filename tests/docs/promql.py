"""A parser for the subset of PromQL in our dashboards and alerts: metrics and labels of a query."""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<range>\[[^\]]+\])|(?P<text>\"[^\"]*\")|(?P<number>\d+(?:\.\d+)?|[+-]Inf)"
    r"|(?P<name>[a-zA-Z_:][\w:]*)|(?P<op>=~|!~|!=|==|>=|<=|[-+*/<>=])|(?P<mark>[(){},]))"
)
_AGGREGATIONS: Final = {"sum", "max", "min", "count", "avg", "topk", "bottomk"}
_FUNCTIONS: Final = {"rate", "increase", "histogram_quantile", "vector"}
_BINARY: Final = {"+", "-", "*", "/", "==", "!=", ">", "<", ">=", "<="}
_SETS: Final = {"and", "or", "unless"}
_DURATION: Final = re.compile(r"\[(\d+[smhd]|\$__rate_interval)\]")


class InvalidQuery(ValueError):
    """The text cannot be parsed."""


class Query:
    """A parsed query; raises InvalidQuery for other text."""

    def __init__(self, text: str) -> None:
        self.metrics: dict[str, set[str]] = {}
        # Labels by which the whole query groups and matches.
        self.groups: set[str] = set()
        self._tokens = _tokens(text)
        self._at = 0
        self._expression()
        if self._at != len(self._tokens):
            raise InvalidQuery(f"{text}: {self._peek()[1]!r} is left over")

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")

    def _take(self, *wanted: str) -> str:
        kind, text = self._peek()
        if wanted and text not in wanted and kind not in wanted:
            raise InvalidQuery(f"{text or 'the end'!r} where {' or '.join(wanted)} is needed")
        self._at += 1
        return text

    def _expression(self) -> None:
        self._operand()
        while self._peek()[1] in _BINARY | _SETS:
            self._take()
            if self._peek()[1] in ("on", "ignoring"):
                self._take()
                self.groups |= self._labels()
            self._operand()

    def _operand(self) -> None:
        kind, text = self._peek()
        if kind == "number":
            self._take()
        elif text == "(":
            self._take()
            self._expression()
            self._take(")")
        elif text in _AGGREGATIONS:
            self._take()
            if self._peek()[1] in ("by", "without"):
                self._take()
                self.groups |= self._labels()
            self._arguments()
        elif text in _FUNCTIONS:
            self._take()
            self._arguments()
        else:
            self._selector()

    def _arguments(self) -> None:
        self._take("(")
        self._expression()
        while self._peek()[1] == ",":
            self._take()
            self._expression()
        self._take(")")

    def _labels(self) -> set[str]:
        self._take("(")
        names: set[str] = set()
        if self._peek()[0] == "name":
            names.add(self._take("name"))
        while self._peek()[1] == ",":
            self._take()
            names.add(self._take("name"))
        self._take(")")
        return names

    def _selector(self) -> None:
        labels = self.metrics.setdefault(self._take("name"), set())
        if self._peek()[1] == "{":
            self._take()
            while self._peek()[1] != "}":
                labels.add(self._take("name"))
                self._take("=", "=~", "!=", "!~")
                self._take("text")
                if self._peek()[1] == ",":
                    self._take()
            self._take("}")
        if self._peek()[0] == "range" and not _DURATION.fullmatch(self._take()):
            raise InvalidQuery("a range needs a duration")


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise InvalidQuery(f"{text[at:]!r} is not PromQL")
        tokens.append((found.lastgroup, found[found.lastgroup]))
        at = found.end()
    return tokens
