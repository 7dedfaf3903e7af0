"""The server's certificate; a renewed file is used without a restart."""

from __future__ import annotations

import ssl
import threading
from pathlib import Path
from typing import Final

import grpc

from laneway.config.settings import Settings
from laneway.errors import ConfigError
from laneway.observability.log_throttle import LogThrottle
from laneway.observability.safe_logger import SafeLogger

log = SafeLogger("laneway")

_CAUSE: Final = "grpc_cert"
# Inode, modification time and size of each file; None: the file is missing.
_FileStates = tuple[tuple[int, int, int] | None, ...]


class Certificate:
    """A certificate chain and its key; the last valid pair is used."""

    def __init__(self, cert: Path, key: Path, warnings: LogThrottle) -> None:
        self._cert = cert
        self._key = key
        self._warnings = warnings
        # TLS handshakes call from threads of gRPC.
        self._lock = threading.Lock()
        self._used: _FileStates = ()

    @classmethod
    def of(cls, settings: Settings, warnings: LogThrottle) -> Certificate | None:
        """The certificate of the settings, if they name one."""
        cert, key = settings.grpc_cert, settings.grpc_key
        if cert is None and key is None:
            return None
        if cert is None or key is None:
            raise ConfigError("grpc_cert, grpc_key: each needs the other")
        return cls(cert.expanduser(), key.expanduser(), warnings)

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials that check the files at every handshake; ConfigError names the files."""
        self._used = self._states()
        # gRPC's types omit that None means no change.
        return grpc.dynamic_ssl_server_credentials(self._read(), self.renewed)  # type: ignore[arg-type]

    def renewed(self) -> grpc.ServerCertificateConfiguration | None:
        """The changed certificate; None if it is unchanged or cannot be used."""
        with self._lock:
            states = self._states()
            if states == self._used:
                return None
            read, problem = None, None
            try:
                read = self._read()
            except ConfigError as error:
                problem = error
            if self._states() != states:
                # The files changed meanwhile: the next handshake reads them again.
                return None
            self._used = states
        if problem is not None:
            self._warnings.warn(_CAUSE, f"{problem}; the previous certificate stays in use")
        else:
            self._warnings.resolved(_CAUSE)
            log.info("the certificate in %s was renewed", self._cert)
        return read

    def _states(self) -> _FileStates:
        return tuple(_state_of(path) for path in (self._cert, self._key))

    def _read(self) -> grpc.ServerCertificateConfiguration:
        key, cert = _bytes_of("grpc_key", self._key), _bytes_of("grpc_cert", self._cert)
        try:
            # gRPC's error only says that it cannot listen.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._cert, self._key, password="")
        except (ssl.SSLError, OSError):
            raise ConfigError(
                f"grpc_cert, grpc_key: {self._cert} and {self._key} must be"
                " a certificate chain and its key without a password, in PEM"
            ) from None
        return grpc.ssl_server_certificate_configuration([(key, cert)])


def _state_of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _bytes_of(name: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{name}: {path} cannot be read ({error.strerror})") from None
