"""A large state is kept as text only where nothing in it can sound secret."""

from __future__ import annotations

import pytest

from laneway.domain.audit import HIDDEN, may_hold_secret, redacted

NAMES = [
    "Passwd",
    "PASSWORD",
    "passphrase",
    "client_secret",
    "\u017fecret",
    "Token",
    "to\u212aen",
    "credent\u0131al",
    "CREDENT\u0130AL",
    "Authorization",
    "cookies",
    "api-key",
    "PRIVATE KEY",
    "Signing_\u212aey",
]


@pytest.mark.parametrize("name", NAMES)
def test_text_with_a_name_that_is_hidden_is_not_kept_as_it_is(name: str) -> None:
    assert redacted({name: "x"}) == {name: HIDDEN}
    assert may_hold_secret(f'{{"a": [], "{name}": "x"}}')


def test_text_without_such_names_is_kept() -> None:
    assert not may_hold_secret('{"a": [[], []], "concurrency_key": null, "größe": "İstanbul"}')
