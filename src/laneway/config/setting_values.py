"""The settings that `Laneway(…)` takes, for type checkers and editors: those of `Settings`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from pydantic import SecretStr


class SettingValues(TypedDict, total=False):
    """A value for each setting; None counts as not given. `Settings` describes and checks them."""

    pg_variables: bool | None
    embedded: bool | None
    listen_dsn: str | None
    pooler: bool | None
    listen: bool | None
    pool_size: int | None
    statement_timeout: float | None
    idle_transaction_timeout: float | None
    silence_timeout: float | None
    connect_timeout: int | None
    application: str | None
    worker: Literal["on", "off"] | bool | None
    concurrency: int | None
    threads: int | None
    children: int | None
    slots: int | None
    max_jobs_per_child: int | None
    shutdown_grace: float | None
    cancel_grace: float | None
    heartbeat_fraction: float | None
    loop_timeout: float | None
    wake_interval_ms: int | None
    leader_ttl: float | None
    watchdog_interval: float | None
    server_host: str | None
    server_leads: bool | None
    server_port: int | None
    tls_cert: Path | str | None
    tls_key: Path | str | None
    behind_tls_proxy: bool | None
    trusted_proxies: Sequence[str] | str | None
    max_connections: int | None
    max_connections_per_address: int | None
    body_timeout: float | None
    grpc: Literal["on", "off"] | bool | None
    grpc_host: str | None
    grpc_port: int | None
    grpc_cert: Path | str | None
    grpc_key: Path | str | None
    grpc_message_bytes: int | None
    grpc_assignment_bytes: int | None
    remote_limit_hold: float | None
    remote_reports_per_second: float | None
    max_remote_workers: int | None
    max_remote_workers_per_principal: int | None
    webhooks: Literal["on", "off"] | bool | None
    webhook_allow: Sequence[str] | str | None
    requests_per_second: int | None
    failed_logins_per_minute: int | None
    max_reads_per_principal: int | None
    max_streams: int | None
    max_streams_per_token: int | None
    event_poll_ms: int | None
    event_retention: float | None
    max_payload_bytes: int | None
    max_payload_depth: int | None
    max_number_digits: int | None
    max_key_bytes: int | None
    max_batch_jobs: int | None
    max_batch_bytes: int | None
    max_step_bytes: int | None
    metrics_host: str | None
    metrics_token: SecretStr | str | None
    metrics_port: int | None
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] | None
    log_format: Literal["text", "json"] | None
    quiet: bool | None
    data_dir: Path | str | None
    pg_bin: Path | str | None
