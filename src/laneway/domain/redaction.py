"""Replaces secrets in text and JSON for people; no other module decides what a secret is.

`redact` is for free text, `redact_fields` for JSON, `redact_dsn` for a connection string.

Every text is read a fixed number of times from left to right: no input takes more than linear time.
Patterns therefore never start inside a run of characters they have already read (look-behind), and
never give characters back (possessive quantifiers).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import unquote, urlsplit

from laneway.domain.token import PREFIXES

HIDDEN: Final = "***"
HIDDEN_FIELD: Final = "[redacted]"
TOO_DEEP: Final = "[too deep]"
# As deep as a payload may be.
DEEPEST: Final = 64
# A longer text is cut, head and tail kept, so that time stays bounded.
LONGEST_TEXT: Final = 256 * 1024
_CUT: Final = "\n… ({} characters left out) …\n"
# Shorter passwords may be part of any word.
_SHORTEST: Final = 4
_LONGEST_WORD: Final = 16

# Names whose value is secret, also as part of a longer name (PGPASSWORD, x-api-key, accessToken).
_WORDS: Final = (
    *("passwd", "password", "passphrase", "secret", "credential", "authorization", "cookie"),
    "signature",
)
_PAIRS: Final = (
    *((kind, "key") for kind in ("api", "access", "account", "private", "signing", "encryption")),
    *((kind, "key") for kind in ("master", "shared")),
    *((kind, "url") for kind in ("sas", "webhook")),
    *((kind, end) for kind in ("conn", "connection") for end in ("str", "string")),
)
_JOINTS: Final = ("", "-", "_", ".", " ")
_NAMES: Final = "|".join((*_WORDS, *(f"{first}[-_. ]?{last}" for first, last in _PAIRS)))
_SECRET_NAME: Final = re.compile(
    rf"{_NAMES}|\bpwd\b|_pwd\b|\bsig\b|tokens?(?![a-z])", re.IGNORECASE
)
# In JSON a name stands alone, so shorter parts are enough.
_SECRET_FIELD: Final = re.compile(rf"{_NAMES}|pwd|token", re.IGNORECASE)
# Each name that _SECRET_FIELD finds contains one of them.
_STEMS: Final = frozenset(
    {"pwd", "token", *_WORDS}
    | {f"{first}{joint}{last}" for first, last in _PAIRS for joint in _JOINTS}
)
_DSN_SECRETS: Final = "password|sslpassword|oauth_client_secret"
_QUERY_SECRET: Final = re.compile(rf"([?&](?:{_DSN_SECRETS})=)[^&#]*", re.IGNORECASE)
_KEYWORD_SECRET: Final = re.compile(
    rf"(\b(?:{_DSN_SECRETS})\s*=\s*)(?:'(?:[^'\\]|\\.)*'?|(?:\\.|[^\s\\])*)",
    re.IGNORECASE | re.DOTALL,
)
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_POSTGRESQL_URL: Final = re.compile(r"postgres(?:ql)?://[^\s'\"]+")
# Names that sound secret but are counts: `max_tokens=4096`, `token_count: 3`.
_COUNT_NAME: Final = re.compile(
    r"tokens\Z|tokens?[-_.]?(?:count|limit|budget|usage|type|s)\b|\A(?:max|num|n|total)[-_.]?tokens?",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"[-+]?[0-9.,_]+\Z")
_NAMED: Final = re.compile(r"""(?<![\w.-])([\w.-]++)(\\?["']?\s*+(?:=>|:=|[:=])\s*+)""")
_HEADER: Final = re.compile(r"(?:authorization|cookie)\Z", re.IGNORECASE)
_QUOTED: Final = {
    '"': re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL),
    "'": re.compile(r"'(?:[^'\\]|\\.)*+'?", re.DOTALL),
}
# A `;` ends a value at the end of a word or before a name: `password=x; next`, `Pwd=x;Db=y`.
_VALUE: Final = re.compile(r"""(?:[^\s&"';]|;(?!\s|\Z|[\w .-]{1,32}=))++""")
_ESCAPED: Final = re.compile(r"""\\["'][^"'\\]*+""")
_HEADER_VALUE: Final = re.compile(r"""(?:[\w-]{1,20}\s++)?[^\s"';,]++(?:[;,]\s*+[^\s"';,]++)*+""")

_SCHEMES: Final = ("bearer", "basic", "negotiate")
_SCHEME: Final = re.compile(
    rf"""(?<![\w+.-])({"|".join(_SCHEMES)})(\s++)([^\s'",;\\]++)""", re.IGNORECASE
)
# An option of a command line: `--password x`, also in a list: '--password', 'x'.
_OPTION: Final = re.compile(r"""(?<![\w-])(--[\w-]++)((?:["'],)?\s++["']?)([^\s"'-][^\s"']*+)""")
# Prefixes of credentials of well-known services and of Laneway. They are searched in long runs
# only, which are rare.
_OWN: Final = frozenset(PREFIXES.values())
_RUN: Final = re.compile(r"(?<![A-Za-z0-9._-])[A-Za-z0-9._-]{19,}+")
_TOKEN: Final = re.compile(
    r"(?<![A-Za-z0-9])("
    + "|".join(sorted(_OWN, reverse=True))
    + r"|sk-|[srp]k_(?:live|test)_|whsec_|gh[opsur]_|github_pat_|glpat-|xox[abeprs]-|xapp-|hf_|AIza"
    r"|ya29\.|SG\.|npm_|pypi-|dop_v1_|dckr_pat_|hvs\.|shpat_|eyJ|A(?:KIA|SIA|BIA|CCA)"
    r")([A-Za-z0-9._-]{16,}+)"
)
_PRIVATE_KEY: Final = re.compile(
    r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----)(?s:.*?)"
    r"(-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----|\Z)"
)
_WORD: Final = re.compile(r"""[^\s"'<>`]++""")


class Redaction:
    """Replaces what looks like a secret, and the passwords of these connection strings."""

    def __init__(self, dsns: Iterable[str | None] = ()) -> None:
        self._known: tuple[str, ...] = ()
        self._words: tuple[tuple[str, re.Pattern[str]], ...] = ()
        self.remember(dsns)

    def remember(self, dsns: Iterable[str | None]) -> None:
        """Replace the passwords of these connection strings too, wherever they occur."""
        found = {secret for dsn in dsns if dsn for secret in _passwords(dsn)}
        self._known = tuple(sorted(found.union(self._known), key=len, reverse=True))
        self._words = tuple(
            (word, re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")) for word in self._known
        )

    def forget(self) -> None:
        """Forget the passwords of all connection strings."""
        self._known, self._words = (), ()

    def __call__(self, text: str) -> str:
        text = shortened(text, LONGEST_TEXT)
        # Whole words first: a password like "secret" must not change names that patterns know.
        for word, pattern in self._words:
            if word in text:
                text = pattern.sub(HIDDEN, text)
        if "-----BEGIN" in text:
            text = _PRIVATE_KEY.sub(rf"\1{HIDDEN}\2", text)
        text = _RUN.sub(_without_tokens, text)
        if "://" in text and "@" in text:
            text = _WORD.sub(_without_userinfo, text)
        lowered = text.lower()
        if any(scheme in lowered for scheme in _SCHEMES):
            text = _SCHEME.sub(_without_credential, text)
        if "--" in text:
            text = _OPTION.sub(_without_option, text)
        if ":" in text or "=" in text:
            text = "".join(_without_values(text))
        for secret in self._known:
            text = text.replace(secret, HIDDEN)
        return text


# The redactor of this process, for errors, log lines and progress before they are stored.
redact: Final = Redaction()


def shortened(text: str, most: int) -> str:
    """The text, or whole words of its head and tail if it is longer than `most` characters.

    Half a word could be half a secret, which no pattern finds.
    """
    if len(text) <= most:
        return text
    head, tail = text[: most // 2].rsplit(None, 1), text[-(most // 2) :].split(None, 1)
    first = head[0] if len(head) == 2 else ""
    last = tail[1] if len(tail) == 2 else ""
    return first + _CUT.format(f"{len(text) - len(first) - len(last):,}") + last


def redact_dsn(dsn: str) -> str:
    """The connection string with every password in it replaced by `***`."""
    scheme, _, rest = dsn.partition("://")
    if not _URL.match(dsn):
        return _KEYWORD_SECRET.sub(rf"\1{HIDDEN}", dsn)
    rest = _QUERY_SECRET.sub(rf"\1{HIDDEN}", rest)
    # The last @ of all: a password may contain an unescaped @, / or ?.
    userinfo, at, host = rest.rpartition("@")
    if at and ":" in userinfo:
        rest = f"{userinfo.partition(':')[0]}:{HIDDEN}@{host}"
    return f"{scheme}://{rest}"


def redact_urls(text: str) -> str:
    """The text with `redact_dsn` applied to each PostgreSQL URL in it, and nothing else changed."""
    return _POSTGRESQL_URL.sub(lambda found: redact_dsn(found[0]), text)


def may_have_secret_field(text: str) -> bool:
    """Whether a JSON text, as PostgreSQL writes it, may contain a name that sounds secret.

    The pattern takes 0.15 s for a megabyte; this takes milliseconds and finds more.
    """
    folded = text.casefold()
    if not folded.isascii():
        folded = folded.replace("\u0131", "i").replace("i\u0307", "i")
    return any(stem in folded for stem in _STEMS)


def redact_fields(state: Mapping[str, object]) -> dict[str, object]:
    """The state as JSON values, with the values of names that sound secret replaced."""
    return {str(name): _without_secret(name, value, 0) for name, value in state.items()}


def _without_secret(name: object, value: object, depth: int) -> object:
    # Whether there is a value is not a secret.
    if _SECRET_FIELD.search(str(name)) and not isinstance(value, bool | None):
        return HIDDEN_FIELD
    return _without_secrets(value, depth)


def _without_secrets(value: object, depth: int) -> object:
    if depth > DEEPEST and isinstance(value, Mapping | list | tuple):
        return TOO_DEEP
    if isinstance(value, Mapping):
        return {str(name): _without_secret(name, inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_secrets(inner, depth + 1) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _without_userinfo(word: re.Match[str]) -> str:
    """A word without the password of its URL, up to the last @, which may be part of it."""
    text = word[0]
    before, separator, rest = text.partition("://")
    userinfo, at, host = rest.rpartition("@")
    if not (separator and at) or not before[-1:].isalnum():
        return text
    user, colon, _ = userinfo.partition(":")
    if colon:
        return f"{before}://{user}:{HIDDEN}@{host}"
    return text


def _without_credential(found: re.Match[str]) -> str:
    scheme, blank, value = found.groups()
    # "basic example", "Basic setup", "the bearer of news" are prose.
    is_prose = scheme.islower() or scheme.lower() != "bearer"
    is_word = value.isalpha() and value[1:].islower() and len(value) < _LONGEST_WORD
    return found[0] if is_prose and is_word else f"{scheme}{blank}{HIDDEN}"


def _without_option(found: re.Match[str]) -> str:
    name, blank, _ = found.groups()
    return f"{name}{blank}{HIDDEN}" if _SECRET_NAME.search(name) else found[0]


def _without_tokens(run: re.Match[str]) -> str:
    return _TOKEN.sub(_without_token, run[0])


def _without_token(found: re.Match[str]) -> str:
    """The prefix of a token; a name that only begins like a token has no digit."""
    prefix, rest = found.groups()
    is_name = prefix not in _OWN and not any(map(str.isdigit, rest))
    return found[0] if is_name else f"{prefix}{HIDDEN}"


def _without_values(text: str) -> Iterator[str]:
    """The text without the values of secret names: name=value, "name": "value" …"""
    place = 0
    while (found := _NAMED.search(text, place)) is not None:
        yield text[place : found.end()]
        place = found.end()
        name = found[1]
        if not _SECRET_NAME.search(name):
            continue
        quote = text[place : place + 1]
        if quote in _QUOTED:
            value = _QUOTED[quote].match(text, place)
            hidden = f"{quote}{HIDDEN}{quote}"
        else:
            value = _unquoted(name, quote).match(text, place)
            hidden = HIDDEN
        if value is None or (_COUNT_NAME.search(name) and _NUMBER.match(value[0])):
            continue
        yield hidden
        place = value.end()
    yield text[place:]


def _unquoted(name: str, first: str) -> re.Pattern[str]:
    if first == "\\":
        return _ESCAPED
    return _HEADER_VALUE if _HEADER.search(name) else _VALUE


def _passwords(dsn: str) -> set[str]:
    """The passwords as written, and unquoted."""
    found = set()
    for keyword in re.finditer(
        rf"(?:{_DSN_SECRETS})\s*=\s*('(?:[^'\\]|\\.)*'?|[^\s&'\"]+)", dsn, re.I
    ):
        found.add(keyword[1].strip("'"))
    with suppress(ValueError):
        found.add(urlsplit(dsn).password or "")
    passwords = found | set(map(unquote, found))
    return {password for password in passwords if len(password) >= _SHORTEST}
