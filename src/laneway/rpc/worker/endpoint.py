"""The addresses and credentials of replicas; the token never appears in errors or logs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc

from laneway.domain.address import is_loopback
from laneway.errors import ConfigError, InvalidInput

# The form of a bearer token in RFC 6750.
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
_OPTIONS: Final = (
    # A dead peer is noticed while leases can still be renewed elsewhere.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    # For a stopped process, whose kernel still accepts bytes; gRPC's default is a minute.
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # The server decides the size of messages.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # The worker repeats lost calls, because it knows which may be repeated.
    ("grpc.enable_retries", 0),
)


class TokenSource:
    """A token; if it comes from a file, `renew` reads the file again."""

    __slots__ = ("_file", "_text")

    def __init__(self, text: str | None, file: str | None = None) -> None:
        self._file = file
        self._text = _checked(text, f"token of {self.source}") if text is not None else ""
        if text is None:
            if file is None:
                raise ConfigError(
                    "token: set LANEWAY_TOKEN_FILE or LANEWAY_TOKEN (`laneway tokens create`)"
                )
            self._text = self._read(file)

    @property
    def source(self) -> str:
        """The place that gave the token, for messages; never the token."""
        return "LANEWAY_TOKEN or --token" if self._file is None else f"the file {self._file}"

    @staticmethod
    def _read(file: str) -> str:
        try:
            return _checked(Path(file).read_text("utf-8"), f"token file {file}")
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise ConfigError(f"token file: cannot read {file}: {reason}") from None

    def renew(self) -> None:
        """Reads the file again: the token was refused, or a new stream is about to use it."""
        if self._file is not None:
            try:
                self._text = self._read(self._file)
            except ConfigError:
                # The file may be being written; the old token is used once more.
                return

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata of every call."""
        return (("authorization", f"Bearer {self._text}"),)

    def to_dict(self) -> dict[str, str | None]:
        return {"text": self._text, "file": self._file}


def _checked(text: str, field: str) -> str:
    token = text.strip()
    if not _TOKEN.fullmatch(token):
        # Never shows the text: it may still be a secret.
        raise ConfigError(f"{field}: must be exactly the output of `laneway tokens create`")
    return token


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Addresses of replicas, tried in turn, and the credentials for them."""

    addresses: tuple[str, ...]
    token: TokenSource = field(repr=False)
    # Certificates to trust instead of the system's, as PEM text.
    tls_ca: str | None = field(default=None, repr=False)
    is_plain: bool = False

    @classmethod
    def to(
        cls,
        server: str,
        token: str | None = None,
        *,
        token_file: str | None = None,
        tls_ca: str | None = None,
        plaintext: bool = False,
    ) -> Endpoint:
        """`server` is host:port, or several with commas; `tls_ca` names a file.

        Uses TLS except on this machine; with a `tls_ca` also there.
        """
        if plaintext and tls_ca is not None:
            raise InvalidInput("plaintext", "excludes TLS: leave out tls_ca")
        addresses = tuple(_address(part.strip()) for part in server.split(","))
        known = TokenSource(token, token_file if token is None else None)
        return cls(addresses, known, _certificates(tls_ca), plaintext)

    def is_plain_to(self, address: str) -> bool:
        """Whether calls to the address are not encrypted."""
        return self.is_plain or (self.tls_ca is None and _is_loopback(address))

    def options_to(self, address: str) -> list[tuple[str, Any]]:
        options: list[tuple[str, Any]] = list(_OPTIONS)
        if _is_loopback(address):
            # Local calls do not use the proxy of the environment.
            options.append(("grpc.enable_http_proxy", 0))
        return options

    def credentials(self) -> grpc.ChannelCredentials:
        ca = None if self.tls_ca is None else self.tls_ca.encode()
        return grpc.ssl_channel_credentials(ca)

    def to_dict(self) -> dict[str, Any]:
        """The endpoint as JSON, for a child process."""
        return {
            "addresses": list(self.addresses),
            "token": self.token.to_dict(),
            "tls_ca": self.tls_ca,
            "is_plain": self.is_plain,
        }

    @classmethod
    def of(cls, data: dict[str, Any]) -> Endpoint:
        token = TokenSource(data["token"]["text"], data["token"]["file"])
        return cls(tuple(data["addresses"]), token, data["tls_ca"], data["is_plain"])


def _address(text: str) -> str:
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found[2]) < 65536:
        raise InvalidInput("server", "must be host:port without http://, or several with commas")
    return text


def _is_loopback(address: str) -> bool:
    return is_loopback(address.rpartition(":")[0].strip("[]"))


def _certificates(file: str | None) -> str | None:
    if file is None:
        return None
    try:
        text = Path(file).read_text("ascii")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not PEM text"
        raise ConfigError(f"tls_ca: cannot read {file}: {reason}") from None
    if "BEGIN CERTIFICATE" not in text:
        raise ConfigError(f"tls_ca: {file} holds no certificate (PEM)")
    return text
