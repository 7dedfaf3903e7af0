"""A large state is stored as text only if it contains no secret name."""

from __future__ import annotations

import pytest

from laneway.domain.redaction import HIDDEN_FIELD, may_have_secret_field, redact, redact_fields

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
    assert redact_fields({name: "x"}) == {name: HIDDEN_FIELD}
    assert may_have_secret_field(f'{{"a": [], "{name}": "x"}}')


SHARED = [
    *("db_password", "passphrase", "client-secret", "Credential", "authorization", "cookie"),
    *("signature", "api_key", "access-key", "account.key", "private_key", "signing-key"),
    *("encryption_key", "master_key", "shared_key", "sas_url", "webhook-url", "pwd", "token"),
    *("conn_str", "connection_string"),
]


@pytest.mark.parametrize("name", SHARED)
def test_free_text_and_json_know_the_same_secret_names(name: str) -> None:
    assert redact(f"{name}=s3cret-value") == f"{name}=***"
    assert redact_fields({name: "s3cret-value"}) == {name: HIDDEN_FIELD}
    assert may_have_secret_field(f'{{"{name}": 1}}')


def test_text_without_such_names_is_kept() -> None:
    assert not may_have_secret_field(
        '{"a": [[], []], "concurrency_key": null, "größe": "İstanbul"}'
    )
