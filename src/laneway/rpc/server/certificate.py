"""The server's certificate, as its files have it: a renewed one is shown without a restart."""

from __future__ import annotations

import logging
import ssl
import threading
from pathlib import Path
from typing import Final

import grpc

from laneway.config.settings import Settings
from laneway.engine.process.throttled_warnings import ThrottledWarnings
from laneway.errors import ConfigError

log = logging.getLogger("laneway")

_CAUSE: Final = "grpc_cert"
# Of each file: which it is, when it was written, how large it is; None: it is not there.
_Marks = tuple[tuple[int, int, int] | None, ...]


class Certificate:
    """A certificate chain and its key; the last pair that fits is the one in use."""

    def __init__(self, cert: Path, key: Path, complaints: ThrottledWarnings) -> None:
        self._cert = cert
        self._key = key
        self._complaints = complaints
        # Handshakes ask from threads of gRPC.
        self._looking = threading.Lock()
        self._marks: _Marks = ()

    @classmethod
    def of(cls, settings: Settings, complaints: ThrottledWarnings) -> Certificate | None:
        """That of the settings, if they name one."""
        cert, key = settings.grpc_cert, settings.grpc_key
        if cert is None and key is None:
            return None
        if cert is None or key is None:
            raise ConfigError("grpc_cert, grpc_key: each needs the other")
        return cls(cert.expanduser(), key.expanduser(), complaints)

    def credentials(self) -> grpc.ServerCredentials:
        """For a server that looks at the files again at every handshake; ConfigError names them."""
        self._marks = self._look()
        # Its types do not know that None means no change.
        return grpc.dynamic_ssl_server_credentials(self._read(), self.renewed)  # type: ignore[arg-type]

    def renewed(self) -> grpc.ServerCertificateConfiguration | None:
        """What the files have now; None: what they had before, or nothing that can be used."""
        with self._looking:
            marks = self._look()
            if marks == self._marks:
                return None
            read, trouble = None, None
            try:
                read = self._read()
            except ConfigError as error:
                trouble = error
            if self._look() != marks:
                # Written meanwhile: the next handshake reads them again.
                return None
            self._marks = marks
        if trouble is not None:
            self._complaints.warn(_CAUSE, f"{trouble}; the certificate read before stays in use")
        else:
            self._complaints.resolved(_CAUSE)
            log.info("the certificate in %s was renewed", self._cert)
        return read

    def _look(self) -> _Marks:
        return tuple(_mark(path) for path in (self._cert, self._key))

    def _read(self) -> grpc.ServerCertificateConfiguration:
        key, cert = _bytes_of("grpc_key", self._key), _bytes_of("grpc_cert", self._cert)
        try:
            # gRPC would only say that it cannot listen.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._cert, self._key, password="")
        except (ssl.SSLError, OSError):
            raise ConfigError(
                f"grpc_cert, grpc_key: {self._cert} and {self._key} must be"
                " a certificate chain and its key without a password, in PEM"
            ) from None
        return grpc.ssl_server_certificate_configuration([(key, cert)])


def _mark(path: Path) -> tuple[int, int, int] | None:
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
