"""Sources of settings besides code: `LANEWAY_*` variables, files, common variables."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from laneway.config.project import CONFIG_FILE, find_project, is_trusted
from laneway.config.service_links import is_service_link
from laneway.domain.suggestion import suggest
from laneway.errors import ConfigError

PREFIX: Final = "LANEWAY_"
# Relative ones in the project's file are relative to the file.
_PATHS: Final = ("data_dir", "pg_bin", "tls_cert", "tls_key", "grpc_cert", "grpc_key")
_SECRETS: Final = ("database_url", "listen_dsn", "metrics_token")


def read_sources(known: Collection[str]) -> dict[str, Any]:
    """The settings that any source gives; the first source that has one wins."""
    return _config_file(known) | _common_variables() | _secret_files() | _laneway_variables(known)


def _laneway_variables(known: Collection[str]) -> dict[str, Any]:
    # An empty variable counts as not set. Case does not matter.
    given = {
        name.upper(): value
        for name, value in os.environ.items()
        if value and not is_service_link(name, value)
    }
    return {name: given[key] for name in known if (key := f"{PREFIX}{name.upper()}") in given}


def _secret_files() -> dict[str, Any]:
    """Secrets in files, as containers mount them: LANEWAY_DATABASE_URL_FILE and the like."""
    found: dict[str, Any] = {}
    for name in _SECRETS:
        variable = f"{PREFIX}{name.upper()}_FILE"
        path = os.environ.get(variable)
        if not path:
            continue
        try:
            found[name] = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8 text"
            raise ConfigError(f"{variable}: cannot read {path} ({reason})") from None
    return found


def _common_variables() -> dict[str, Any]:
    """Variables that other programs also use: DATABASE_URL, PGHOST, PGSERVICE."""
    found: dict[str, Any] = {}
    url = os.environ.get("DATABASE_URL")
    if url:
        found["database_url"] = url
    if os.environ.get("PGHOST") or os.environ.get("PGSERVICE"):
        found["pg_variables"] = True
    return found


def _config_file(known: Collection[str]) -> dict[str, Any]:
    """`laneway.toml` of the project, or the file that LANEWAY_CONFIG names."""
    named = os.environ.get(f"{PREFIX}CONFIG")
    path = Path(named).expanduser() if named else find_project() / CONFIG_FILE
    shown = f"{PREFIX}CONFIG" if named else CONFIG_FILE
    if not named and path.exists() and not (is_trusted(path) and is_trusted(path.parent)):
        # It may name programs to run, in `pg_bin`.
        raise ConfigError(
            f"{shown}: another account owns {path} or its directory, as it may in a container;"
            f" run as that account or, if you trust it, set {PREFIX}CONFIG={path}"
        )
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named:
            raise ConfigError(f"{shown}: the file {path} does not exist") from None
        return {}
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(f"{shown}: the file {path} cannot be read ({reason})") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{shown}: the file {path} is not TOML: {error}") from None
    for name in data:
        if name not in known:
            raise ConfigError(f"{name} in {path}: is not a setting{suggest(name, known)}")
    if not named:
        for name in _PATHS:
            if isinstance(value := data.get(name), str):
                data[name] = str(path.parent / Path(value).expanduser())
    return data


def database_source(conninfo: str | None) -> str:
    """The variable that names the database; `database_url` if it comes from a file or code."""
    if conninfo == "":
        return "PGHOST"
    variables = (f"{PREFIX}DATABASE_URL", "DATABASE_URL")
    found = (name for name in variables if conninfo and os.environ.get(name) == conninfo)
    return next(found, "database_url")
