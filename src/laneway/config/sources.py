"""Sources of settings besides code and `LANEWAY_*` variables: files and common variables."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Final

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

from laneway.domain.missing import suggest
from laneway.errors import ConfigError

CONFIG_FILE: Final = "laneway.toml"
PREFIX: Final = "LANEWAY_"
_SECRETS: Final = ("database_url", "listen_dsn", "metrics_token")


class _Source(PydanticBaseSettingsSource):
    """A source that is read as a whole, not field by field."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        raise NotImplementedError

    def __call__(self) -> dict[str, Any]:
        raise NotImplementedError


class SecretFiles(_Source):
    """Secrets in files, as containers mount them: LANEWAY_DATABASE_URL_FILE and the like."""

    def __call__(self) -> dict[str, Any]:
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


class PlainVariables(_Source):
    """Variables that other programs also use: DATABASE_URL, PGHOST, PGSERVICE."""

    def __call__(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        url = os.environ.get("DATABASE_URL")
        if url:
            found["database_url"] = url
        if os.environ.get("PGHOST") or os.environ.get("PGSERVICE"):
            found["pg_variables"] = True
        return found


class ConfigFile(_Source):
    """`laneway.toml` in the current directory, or the file that LANEWAY_CONFIG names."""

    def __call__(self) -> dict[str, Any]:
        named = os.environ.get(f"{PREFIX}CONFIG")
        path = Path(named).expanduser() if named else Path(CONFIG_FILE)
        shown = f"{PREFIX}CONFIG" if named else CONFIG_FILE
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
        known = self.settings_cls.model_fields
        for name in data:
            if name not in known:
                raise ConfigError(f"{name} in {path}: is not a setting{suggest(name, known)}")
        return data
