"""Secrets are struck out of text, other text stays, and it takes linear time."""

from __future__ import annotations

import time

import pytest

from laneway.domain.redaction import HIDDEN, LONGEST_TEXT, Redaction
from laneway.domain.token import new_secret

SECRET = "hunter2Hunter3"
KINDS = {
    "a URL": f"cannot reach postgresql://ann:{SECRET}@db:5432/app",
    "a URL whose password holds @ and /": f"redis://:{SECRET}@x/{SECRET}@cache/0",
    "a query": f"GET https://api.example/v1?api_key={SECRET}&page=2",
    "keywords": f"host=db user=ann password='it\\'s {SECRET}' port=5432",
    "an environment": f"env PGPASSWORD={SECRET} AWS_SECRET_ACCESS_KEY={SECRET}",
    "a command line": f"psql --password {SECRET}, or ['curl', '--token', '{SECRET}']",
    "a header": f"Authorization: Bearer {SECRET}",
    "a header without a scheme": f"X-Api-Key: {SECRET}",
    "another scheme": f"sent Basic {SECRET}",
    "a cookie": f"Cookie: theme=dark; session={SECRET}",
    "a dictionary": f"{{'client_secret': '{SECRET}', 'x': 1}}",
    "JSON": f'{{"accessToken":"{SECRET}","x":1}}',
    "JSON inside JSON": f'"{{\\"token\\": \\"{SECRET}\\"}}"',
    "a storage account": f"AccountName=a;AccountKey={SECRET}==;EndpointSuffix=core",
    "a signed URL": f"https://files.example/a?sig={SECRET}",
    "a private key": f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
    "half a private key": f"-----BEGIN PRIVATE KEY-----\n{SECRET}",
    "a key known by its form": f"used sk-proj-{SECRET}{SECRET}, ghp_{SECRET}{SECRET}",
    "a signed token": f"eyJhbGciOiJIUzI1NiJ9.{SECRET}.{SECRET}",
    "Laneway's own": f"with {new_secret().text}{SECRET}",
}
PLAIN = (
    "GET /jobs/01a1e2d2-fab0-747b-8bd8-18d6ff7ab5e2 200 in 3 ms",
    "lw_short is not a token; see http://host:8420/docs",
    "max_tokens=4096 and token_count: 3",
    "Basic setup of the bearer of news",
    "use hf_hub_download_with_retries() of the library",
    'File "/srv/app/handlers.py", line 12, in ingest',
    "KeyError: 'page'",
    "mail ann@example.com at https://example.com/a@b",
)


@pytest.mark.parametrize("kind", KINDS)
def test_secret_is_struck_out(kind: str) -> None:
    shown = Redaction()(KINDS[kind])
    assert SECRET not in shown
    assert HIDDEN in shown


@pytest.mark.parametrize("text", PLAIN)
def test_plain_text_is_left_alone(text: str) -> None:
    assert Redaction()(text) == text


def test_text_next_to_secret_stays() -> None:
    shown = Redaction()("api_key=abcdef&page=2 user=ann token: xyz job_id=7")
    assert shown == "api_key=***&page=2 user=ann token: *** job_id=7"


@pytest.mark.parametrize(
    "text, shown",
    [
        ("password=hunter2; retrying", "password=***; retrying"),
        ("token: xyz;", "token: ***;"),
        ("Server=a;Password=x;Database=d", "Server=a;Password=***;Database=d"),
        ("pwd=a;b c", "pwd=*** c"),
    ],
)
def test_semicolon_after_secret_stays(text: str, shown: str) -> None:
    assert Redaction()(text) == shown


def test_password_of_known_database_is_struck_out_anywhere() -> None:
    redact = Redaction(["postgresql://ann:s3cret%21word@db/app"])
    assert redact("s3cret!word, s3cret%21word") == "***, ***"


def test_long_text_keeps_whole_words_of_both_ends() -> None:
    dsn = f"postgresql://ann:{SECRET * 9}@db/app"
    for shift in range(0, 200, 7):
        text = "a " * ((LONGEST_TEXT - shift) // 4) + dsn + " b" * LONGEST_TEXT
        shown = Redaction()(text)
        assert len(shown) < LONGEST_TEXT + 100
        assert SECRET not in shown
        assert "characters left out" in shown


# Patterns could scan each of these again from every possible start.
HOSTILE = (
    "a://:", "a.", "a-_.", "bearer ", "basic a", "password=", "password ", "passwordpassword",
    "token='\\", 'token="', "sk-", "eyJ-", "eyJaaaaaaaaa.", "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN ", "a://b:", "a://b:c@", "@", "a:", "authorization: ", "cookie: a;", 'token=\\"',
    "AKIA", "--password ", "--a", "\\", "'", " =", "\n", "a" * 99 + " ",
)  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_no_text_takes_more_than_linear_time(unit: str) -> None:
    # 100,000 characters take about 0.02 s of processor time; a scan from each of them would
    # take minutes. Processor time does not depend on the load of the machine.
    text = unit * (100_000 // len(unit))
    began = time.thread_time()
    Redaction()(text)
    assert time.thread_time() - began < 3.0


def test_common_word_as_password_leaves_names_intact() -> None:
    struck = Redaction(["postgresql://ann:secret@db/app"])("client_secret=hunter2Hunter3 secret")
    assert "hunter2" not in struck
    assert "secret" not in struck
