"""Settings: from code, then `LANEWAY_*` variables, then `laneway.toml`, then the defaults below.

    settings = Settings.load()                      # from the environment and the file
    settings = Settings.load(concurrency=8)         # the same, with one value from code

`LANEWAY_CONFIG` names another file. The database is `LANEWAY_DATABASE_URL`, else `DATABASE_URL`,
else the file's `database_url`, else libpq's variables when PGHOST or PGSERVICE is set, else
embedded PostgreSQL. Passwords are never printed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    PositiveInt,
    SecretStr,
    ValidationError,
    field_validator,
)

from laneway.config.addresses import read_addresses, read_targets
from laneway.config.lanes import read_lanes
from laneway.config.project import CONFIG_FILE
from laneway.config.sources import PREFIX, read_sources
from laneway.domain.lane import Lane
from laneway.domain.payload import PayloadLimits
from laneway.domain.redaction import redact_dsn
from laneway.domain.suggestion import suggest
from laneway.domain.text import escape_text
from laneway.errors import ConfigError

_DSN_FIELDS: Final = ("database_url", "listen_dsn")
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_DRIVER: Final = re.compile(r"\A(postgres(?:ql)?)\+[a-z0-9_]+://", re.IGNORECASE)


def _on_off(value: object) -> object:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        word = value.strip().lower()
        return {"true": "on", "1": "on", "yes": "on", "false": "off", "0": "off", "no": "off"}.get(
            word, word
        )
    return value


def _embedded(value: object) -> object:
    word = _on_off(value)
    return "project" if word == "on" else word


def _check_dsn(value: object) -> object:
    """A PostgreSQL URL or a libpq keyword string; a SQLAlchemy driver suffix is dropped."""
    if not isinstance(value, str):
        return value
    dsn = value.strip()
    if "\x00" in dsn:
        raise ValueError("must not contain a NUL character")
    if _URL.match(dsn):
        dsn = _DRIVER.sub(r"\1://", dsn, count=1)
        if not dsn.startswith(("postgresql://", "postgres://")):
            raise ValueError("must be a PostgreSQL URL (postgresql://…)")
    elif dsn and "=" not in dsn:
        raise ValueError("must be a PostgreSQL URL (postgresql://…) or key=value pairs")
    return dsn


_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Dsn = Annotated[str | None, BeforeValidator(_check_dsn)]


class Settings(BaseModel):
    """All settings, frozen once loaded. Durations are seconds unless named _ms."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    database_url: _Dsn = Field(default=None, description="PostgreSQL to use; without one, embedded")
    pg_variables: bool = Field(
        default=False, description="without a database_url, connect with PGHOST, PGSERVICE …"
    )
    embedded: Annotated[Literal["project", "shared", "off"], BeforeValidator(_embedded)] = Field(
        default="project",
        description="without a database: project: PostgreSQL embedded in this project;"
        " shared: one for all projects of this user; off: none",
    )
    listen_dsn: _Dsn = Field(
        default=None, description="a direct connection for LISTEN, which bypasses a pooler"
    )
    pooler: bool | None = Field(
        default=None,
        description="true: behind a transaction pooler, without LISTEN and prepared statements;"
        " false: no pooler; not set: detect it",
    )
    listen: bool = Field(
        default=True, description="wake up by LISTEN/NOTIFY; polling alone works too"
    )
    pool_size: PositiveInt = Field(default=3, description="database connections per process")
    statement_timeout: _Seconds = Field(default=30.0, description="longest time for one statement")
    idle_transaction_timeout: _Seconds = Field(
        default=3.0,
        description="PostgreSQL ends a transaction of Laneway that is idle for this long",
    )
    silence_timeout: _Seconds = Field(
        default=4.0, description="probe a database connection after this long without a reply"
    )
    connect_timeout: PositiveInt = Field(default=5, description="longest wait for a connection")

    application: str | None = Field(
        default=None,
        min_length=1,
        max_length=128,
        description="name under which job types are published; the handler's module if not set",
    )
    worker: Annotated[Literal["on", "off"], BeforeValidator(_on_off)] = Field(
        default="on", description="off keeps an embedded worker from starting"
    )
    concurrency: PositiveInt = Field(
        default=100, description="async jobs a worker process runs at once"
    )
    threads: PositiveInt = Field(
        default=32, description="threads for handlers that are plain functions"
    )
    children: int = Field(default=2, ge=0, description="child processes for isolated handlers")
    slots: PositiveInt | None = Field(
        default=None, description="jobs a worker process runs at once, of all kinds together"
    )
    max_jobs_per_child: PositiveInt = Field(
        default=1000, description="jobs after which a child process is replaced; 1: fresh per job"
    )
    shutdown_grace: _Seconds = Field(default=30.0, description="time to finish jobs when stopping")
    cancel_grace: _Seconds = Field(default=30.0, description="time for a cancelled job to stop")
    heartbeat_fraction: float = Field(
        default=1 / 3, gt=0, lt=1, description="heartbeat interval as a fraction of the lease"
    )
    loop_timeout: _Seconds = Field(
        default=300.0,
        description="restart a supervised process whose event loop is blocked this long",
    )
    wake_interval_ms: PositiveInt = Field(
        default=5, description="shortest time between two wake-ups of workers by submits"
    )

    lanes: Annotated[tuple[InstanceOf[Lane], ...], BeforeValidator(read_lanes)] = Field(
        default=(),
        description="lanes to create if missing: TOML, JSON or a file; a preset for a new database",
    )
    leader_ttl: _Seconds = Field(
        default=2.5, description="another process becomes leader after this long without one"
    )
    watchdog_interval: _Seconds = Field(
        default=1.5, description="time between two searches for lapsed leases"
    )

    server_host: str = Field(default="127.0.0.1", description="address the server listens on")
    server_leads: bool = Field(
        default=True,
        description="a server may become leader, which runs watchdog, scheduler and retention",
    )
    server_port: int = Field(default=8420, ge=0, le=65535, description="port; 0: any free one")

    tls_cert: Path | None = Field(
        default=None, description="file of the server's certificate chain (PEM), with tls_key"
    )
    tls_key: Path | None = Field(default=None, description="file of its private key (PEM)")
    behind_tls_proxy: bool = Field(
        default=False,
        description="a proxy terminates TLS: serve plain text, treat requests as secure",
    )
    trusted_proxies: Annotated[tuple[str, ...], BeforeValidator(read_addresses)] = Field(
        default=(),
        description="addresses and networks whose X-Forwarded-For and -Proto are trusted",
    )
    max_connections: PositiveInt = Field(
        default=2000, description="open connections of one server, from all addresses"
    )
    max_connections_per_address: PositiveInt = Field(
        default=500, description="open connections from one address; not loopback, not a proxy"
    )
    body_timeout: _Seconds = Field(
        default=60.0, description="longest time for the body of a request to arrive"
    )

    grpc: Annotated[Literal["on", "off"], BeforeValidator(_on_off)] = Field(
        default="off", description="on: the server also serves remote workers"
    )
    grpc_host: str = Field(default="127.0.0.1", description="address for remote workers")
    grpc_port: int = Field(
        default=8421, ge=0, le=65535, description="port for remote workers; 0: any free one"
    )
    grpc_cert: Path | None = Field(
        default=None, description="file of the certificate chain (PEM); needed off loopback"
    )
    grpc_key: Path | None = Field(default=None, description="file of its private key (PEM)")
    grpc_message_bytes: int = Field(
        default=4 * 1024 * 1024,
        ge=1024 * 1024,
        le=2**31 - 1,
        description="size of one message from a remote worker",
    )
    grpc_assignment_bytes: int = Field(
        default=16 * 1024 * 1024,
        ge=1024 * 1024,
        le=2**31 - 1,
        description="size of one message to a remote worker: payload, checkpoint and steps",
    )
    remote_limit_hold: float = Field(
        default=3600.0,
        gt=0,
        description="seconds that a remote handler may hold a limit for one call",
    )
    remote_reports_per_second: float = Field(
        default=100.0,
        gt=0,
        description="progress reports of one remote attempt; ten times as many in a burst",
    )
    max_remote_workers: PositiveInt = Field(
        default=1000, description="remote workers connected to one server"
    )
    max_remote_workers_per_principal: PositiveInt = Field(
        default=200, description="remote workers of one principal, connected to one server"
    )

    webhooks: Annotated[Literal["on", "off"], BeforeValidator(_on_off)] = Field(
        default="on", description="off: this process sends no requests to webhooks"
    )
    webhook_allow: Annotated[tuple[str, ...], BeforeValidator(read_targets)] = Field(
        default=(),
        description="hosts, addresses and networks that webhooks may use although they are not"
        " public, also with http",
    )

    requests_per_second: int = Field(
        default=5000, ge=0, description="per token or session; bursts of twice that; 0: no limit"
    )
    failed_logins_per_minute: int = Field(
        default=30, ge=0, description="wrong tokens and links from one address; 0: no limit"
    )

    max_reads_per_principal: PositiveInt = Field(
        default=3, description="lists, counts and searches of one principal at once; more wait"
    )
    max_streams: PositiveInt = Field(default=1000, description="open streams of one server")
    max_streams_per_token: PositiveInt = Field(
        default=20, description="open streams of one token or session at one server"
    )
    event_poll_ms: PositiveInt = Field(
        default=500, description="streams poll for changes this often where LISTEN is not available"
    )
    event_retention: float = Field(
        default=900.0,
        ge=60,
        allow_inf_nan=False,
        description="how long events are kept for resuming streams",
    )

    max_payload_bytes: PositiveInt = Field(
        default=1024 * 1024, description="size of a payload as JSON"
    )
    max_payload_depth: PositiveInt = Field(default=64, description="nesting of a payload")
    max_number_digits: int = Field(
        default=308, ge=17, le=4300, description="most digits of a number in a payload"
    )
    max_key_bytes: PositiveInt = Field(default=512, le=2000, description="longest unique key")
    max_batch_jobs: PositiveInt = Field(default=1000, description="most jobs in one batch")
    max_batch_bytes: PositiveInt = Field(
        default=16 * 1024 * 1024, description="total size of the payloads of one batch"
    )
    max_step_bytes: PositiveInt = Field(
        default=1024 * 1024, description="size of a step's result as JSON"
    )

    metrics_host: str = Field(
        default="127.0.0.1", description="address a worker serves its metrics on"
    )
    metrics_token: SecretStr | None = Field(
        default=None,
        min_length=16,
        description="bearer token that a worker's metrics require; needed off loopback",
    )
    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="port of a worker's metrics; unset: none; further processes use the next ports",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = Field(
        default="INFO", description="lowest level of log lines to show"
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="format of log lines: text or json"
    )
    quiet: bool = Field(
        default=False,
        description="log no line for each job that starts or ends; failures and returned jobs stay",
    )
    data_dir: Path | None = Field(
        default=None,
        description="data directory of embedded PostgreSQL; unset: `.laneway` of the project",
    )
    pg_bin: Path | None = Field(
        default=None, description="directory of the PostgreSQL programs to embed"
    )

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @classmethod
    def load(cls, **overrides: object) -> Settings:
        """Loads the settings of this process; an override of None counts as not given.

        Raises ConfigError with the name of the setting and the rule it breaks.
        """
        given = {name: value for name, value in overrides.items() if value is not None}
        try:
            return cls.model_validate(read_sources(cls.model_fields) | given)
        except ValidationError as error:
            raise ConfigError(_explain(error, given)) from None

    @cached_property
    def conninfo(self) -> str | None:
        """The DSN to connect to: "" for libpq's variables, None for embedded PostgreSQL."""
        if self.database_url is not None:
            return self.database_url
        return "" if self.pg_variables else None

    @cached_property
    def can_listen(self) -> bool:
        """Whether LISTEN works: behind a transaction pooler it needs a direct `listen_dsn`."""
        return self.listen and (not self.pooler or self.listen_dsn is not None)

    @cached_property
    def payload_limits(self) -> PayloadLimits:
        """The bounds of a payload."""
        return PayloadLimits(
            max_bytes=self.max_payload_bytes,
            max_depth=self.max_payload_depth,
            max_digits=self.max_number_digits,
            key_bytes=self.max_key_bytes,
            batch_jobs=self.max_batch_jobs,
            batch_bytes=self.max_batch_bytes,
            step_bytes=self.max_step_bytes,
        )

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name in type(self).model_fields:
            value = getattr(self, name)
            if name in _DSN_FIELDS and value is not None:
                value = redact_dsn(value)
            yield name, value


def _explain(error: ValidationError, given: Mapping[str, object]) -> str:
    """One line per wrong setting: where it was set, as far as known, and the rule."""
    lines = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        name = str(problem["loc"][0]) if problem["loc"] else "settings"
        variable = f"{PREFIX}{name.upper()}"
        if problem["type"] == "extra_forbidden":
            lines.append(f"{name}: is not a setting{suggest(name, Settings.model_fields)}")
            continue
        if name in given:
            shown = name
        elif os.environ.get(variable):
            shown = variable
        elif name == "database_url" and os.environ.get("DATABASE_URL"):
            shown = "DATABASE_URL"
        else:
            shown = f"{name} in {os.environ.get(f'{PREFIX}CONFIG') or CONFIG_FILE}"
        rule = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        lines.append(f"{shown}: {rule.partition(', unable to ')[0]}")
    return escape_text("; ".join(lines))
