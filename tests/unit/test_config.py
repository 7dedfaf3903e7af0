"""Settings: sources, refusals, and hidden secrets."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from laneway.config.settings import Settings
from laneway.config.sources import database_source
from laneway.domain.lane import Lane
from laneway.domain.payload import PayloadLimits
from laneway.domain.redaction import redact_dsn
from laneway.errors import ConfigError

URL = "postgresql://ann:hunter2@db.example/app"


@pytest.fixture(autouse=True)
def _a_clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith(("LANEWAY_", "PG")) or name == "DATABASE_URL":
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def refused(**overrides: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        Settings.load(**overrides)
    return str(caught.value)


def test_without_any_setting_the_defaults_hold_and_the_database_is_embedded() -> None:
    settings = Settings.load()
    assert settings.conninfo is None
    assert (settings.concurrency, settings.threads, settings.children) == (100, 32, 2)
    assert (settings.leader_ttl, settings.watchdog_interval, settings.pool_size) == (2.5, 1.5, 3)
    assert settings.heartbeat_fraction == pytest.approx(1 / 3)
    assert settings.payload_limits == PayloadLimits()
    assert (settings.worker, settings.lanes) == ("on", ())


def test_code_beats_variable_beats_file_beats_default(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("laneway.toml").write_text("concurrency = 2\nthreads = 3\nchildren = 4\n")
    monkeypatch.setenv("LANEWAY_CONCURRENCY", "5")
    monkeypatch.setenv("LANEWAY_THREADS", "6")
    settings = Settings.load(concurrency=7)
    assert (settings.concurrency, settings.threads, settings.children) == (7, 6, 4)
    assert settings.pool_size == 3


def test_unset_variable_does_not_clobber_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("laneway.toml").write_text('log_format = "json"\n[[lanes]]\nname = "gpu"\n')
    monkeypatch.setenv("LANEWAY_LOG_FORMAT", "")
    settings = Settings.load(log_format=None)
    assert settings.log_format == "json"
    assert settings.lanes == (Lane("gpu"),)


def test_laneway_config_names_another_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Path("laneway.toml").write_text("concurrency = 2\n")
    other = tmp_path / "other.toml"
    other.write_text("concurrency = 9\n")
    monkeypatch.setenv("LANEWAY_CONFIG", str(other))
    assert Settings.load().concurrency == 9
    other.unlink()
    assert "LANEWAY_CONFIG" in refused()


@pytest.mark.parametrize(
    "content, message",
    [
        (b"concurrency = ", "is not TOML"),
        (b"\xff", "cannot be read"),
        (b"concurency = 3", "did you mean concurrency?"),
        (b"concurrency = 0", "concurrency in laneway.toml: must be greater than 0"),
    ],
)
def test_broken_file_is_named(content: bytes, message: str) -> None:
    Path("laneway.toml").write_bytes(content)
    assert message in refused()


@pytest.mark.parametrize(
    "environment, conninfo",
    [
        ({}, None),
        ({"DATABASE_URL": URL}, URL),
        ({"DATABASE_URL": "postgresql://other", "LANEWAY_DATABASE_URL": URL}, URL),
        ({"DATABASE_URL": "", "LANEWAY_DATABASE_URL": ""}, None),
        ({"PGHOST": "db.example"}, ""),
        ({"PGSERVICE": "app"}, ""),
        ({"PGHOST": "db.example", "DATABASE_URL": URL}, URL),
        ({"PGPORT": "5433"}, None),
        ({"DATABASE_URL": "postgresql+asyncpg://h/db"}, "postgresql://h/db"),
        ({"DATABASE_URL": "host=h dbname=d"}, "host=h dbname=d"),
    ],
)
def test_database_is_found_where_people_name_it(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], conninfo: str | None
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Settings.load().conninfo == conninfo


def test_variable_beats_the_files_database(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("laneway.toml").write_text('database_url = "postgresql://file/db"\n')
    assert Settings.load().conninfo == "postgresql://file/db"
    monkeypatch.setenv("DATABASE_URL", URL)
    assert Settings.load().conninfo == URL


def test_database_of_another_kind_is_refused_by_the_variables_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "mysql://ann:hunter2@h/db")
    message = refused()
    assert message == "DATABASE_URL: must be a PostgreSQL URL (postgresql://…)"
    assert "key=value" in refused(database_url="nonsense")


@pytest.mark.parametrize(
    "name, value",
    [
        ("concurrency", 0),
        ("concurrency", "many"),
        ("threads", 0),
        ("children", -1),
        ("pool_size", 0),
        ("shutdown_grace", 0),
        ("cancel_grace", -1),
        ("leader_ttl", float("nan")),
        ("watchdog_interval", float("inf")),
        ("statement_timeout", 0),
        ("connect_timeout", 0),
        ("wake_interval_ms", 0),
        ("heartbeat_fraction", 1),
        ("max_payload_bytes", 0),
        ("max_number_digits", 5000),
        ("worker", "maybe"),
        ("log_level", "LOUD"),
        ("log_format", "xml"),
        ("pooler", "perhaps"),
    ],
)
def test_wrong_setting_is_named_with_its_rule(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    assert refused(**{name: value}).startswith(f"{name}: ")
    variable = f"LANEWAY_{name.upper()}"
    monkeypatch.setenv(variable, str(value))
    assert refused().startswith(f"{variable}: ")


def test_unknown_override_is_refused_with_a_guess() -> None:
    assert refused(concurency=3) == "concurency: is not a setting; did you mean concurrency?"


@pytest.mark.parametrize(
    "text, worker",
    [("on", "on"), ("OFF", "off"), ("false", "off"), ("1", "on"), ("no", "off")],
)
def test_worker_setting_accepts_usual_boolean_words(
    monkeypatch: pytest.MonkeyPatch, text: str, worker: str
) -> None:
    monkeypatch.setenv("LANEWAY_WORKER", text)
    assert Settings.load().worker == worker


def test_behind_a_pooler_only_a_direct_connection_can_listen() -> None:
    assert Settings.load().can_listen
    assert not Settings.load(listen=False).can_listen
    assert not Settings.load(pooler=True).can_listen
    assert Settings.load(pooler=True, listen_dsn=URL).can_listen


def test_payload_limits_follow_the_settings() -> None:
    limits = Settings.load(max_payload_bytes=10, max_payload_depth=2, max_batch_jobs=3)
    assert limits.payload_limits == PayloadLimits(max_bytes=10, max_depth=2, batch_jobs=3)


FAST = Lane("fast", ("a", "b"), max_slots=3)


@pytest.mark.parametrize(
    "text",
    [
        '[{"name": "fast", "job_types": ["a", "b"], "max_slots": 3}]',
        '{"fast": {"job_types": ["a", "b"], "max_slots": 3}}',
        '{"lanes": [{"name": "fast", "job_types": ["a", "b"], "max_slots": 3}]}',
        '[[lanes]]\nname = "fast"\njob_types = ["a", "b"]\nmax_slots = 3\n',
        '[lanes.fast]\njob_types = ["a", "b"]\nmax_slots = 3\n',
        '[fast]\njob_types = ["a", "b"]\nmax_slots = 3\n',
        'fast = {job_types = ["a", "b"], max_slots = 3}',
    ],
)
def test_lanes_are_read_from_toml_or_json_text_or_a_file_of_either(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("LANEWAY_LANES", text)
    assert Settings.load().lanes == (FAST,)
    Path("lanes.conf").write_text(text)
    monkeypatch.setenv("LANEWAY_LANES", "lanes.conf")
    assert Settings.load().lanes == (FAST,)


def test_unbounded_lane_can_be_written_in_toml_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ('[fast]\nmax_slots = "unbounded"', '{"fast": {"max_slots": null}}'):
        monkeypatch.setenv("LANEWAY_LANES", text)
        assert Settings.load().lanes == (Lane("fast", max_slots=None),)


@pytest.mark.parametrize(
    "text, message",
    [
        ("[a]\nmax_slots = 99999", "lane a, max_slots: must be a whole number from 0 to 10000"),
        ("[A]\nmax_slots = 1", "lane A, name: "),
        ("[a]\nslots = 1", "lane a, slots: is not a setting of a lane"),
        ('[{"max_slots": 1}]', "name: is required"),
        ('[{"name": "a"}, {"name": "a"}]', "names the lane a twice"),
        ('{"a": {"job_types": ["x"]}, "b": {"job_types": ["x"]}}', "into two lanes: a, b"),
        ("a = 1", "a: must be a table"),
        ("[1]", "must hold a table"),
        ("[[[", "neither JSON nor TOML"),
        ("[" * 100_000, "neither JSON nor TOML"),
        ("missing.toml", "cannot read the file"),
    ],
)
def test_wrong_lanes_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.setenv("LANEWAY_LANES", text)
    error = refused()
    assert error.startswith("LANEWAY_LANES: ")
    assert message in error


def test_settings_are_frozen() -> None:
    settings = Settings.load()
    with pytest.raises(ValidationError):
        settings.concurrency = 5
    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301 -- our own bytes
    assert hash(settings) == hash(Settings.load())


def test_every_setting_is_described() -> None:
    assert all(field.description for field in Settings.model_fields.values())


DSNS = [
    ("postgresql://ann:hunter2@h:5432/db", "postgresql://ann:***@h:5432/db"),
    ("postgresql://ann:hun@ter2@h/db", "postgresql://ann:***@h/db"),
    ("postgresql://ann:hun/ter?2@h/db", "postgresql://ann:***@h/db"),
    ("postgresql://:hunter2@h/db", "postgresql://:***@h/db"),
    ("postgres+asyncpg://ann:hunter2@h", "postgres+asyncpg://ann:***@h"),
    (
        "postgresql://h/db?user=ann&password=hunter2&x=1",
        "postgresql://h/db?user=ann&password=***&x=1",
    ),
    ("postgresql://h/db?sslpassword=hunter2", "postgresql://h/db?sslpassword=***"),
    ("postgresql://ann@h/db", "postgresql://ann@h/db"),
    ("postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"),
    ("host=h password=hunter2 dbname=d", "host=h password=*** dbname=d"),
    ("host=h password = 'hun\\'ter 2' dbname=d", "host=h password = *** dbname=d"),
    ("PASSWORD=hun\\ ter2 host=h", "PASSWORD=*** host=h"),
    ("password='hunter2", "password=***"),
    ("host=h", "host=h"),
    ("", ""),
]


@pytest.mark.parametrize("dsn, shown", DSNS)
def test_dsn_is_shown_without_its_password(dsn: str, shown: str) -> None:
    assert redact_dsn(dsn) == shown


@given(st.text(min_size=4).filter(lambda word: "&" not in word and "#" not in word))
def test_password_in_any_form_is_hidden_in_url(word: str) -> None:
    password = f"<{word}>"
    for dsn in (f"postgresql://ann:{password}@h/db", f"postgresql://h/db?password={password}"):
        assert password not in redact_dsn(dsn)


def test_no_password_shows_in_settings_or_their_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.load(database_url=URL, listen_dsn="host=h password=hunter2")
    assert "hunter2" not in repr(settings) + str(settings) + f"{settings}"
    assert "ann:***@db.example" in repr(settings)
    assert settings.database_url == URL
    monkeypatch.setenv("LANEWAY_DATABASE_URL", "http://ann:hunter2@h")
    monkeypatch.setenv("LANEWAY_LISTEN_DSN", "hunter2")
    assert "hunter2" not in refused(concurrency=-1)
    with pytest.raises(ValidationError) as caught:
        Settings(database_url="http://ann:hunter2@h")
    assert "hunter2" not in str(caught.value)


def test_secrets_are_read_from_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    monkeypatch.setenv("LANEWAY_DATABASE_URL_FILE", str(file))
    assert "LANEWAY_DATABASE_URL_FILE" in refused()
    file.write_text(f"{URL}\n")
    assert Settings.load().database_url == URL
    monkeypatch.setenv("LANEWAY_DATABASE_URL", "postgresql://other/db")
    assert Settings.load().database_url == "postgresql://other/db"


def test_database_is_named_by_the_variable_that_gave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://localhost/app"
    monkeypatch.delenv("LANEWAY_DATABASE_URL", raising=False)
    monkeypatch.setenv("DATABASE_URL", url)
    assert database_source(url) == "DATABASE_URL"
    monkeypatch.setenv("LANEWAY_DATABASE_URL", url)
    assert database_source(url) == "LANEWAY_DATABASE_URL"
    assert database_source("postgresql://localhost/code") == "database_url"
    assert database_source("") == "PGHOST"


def test_service_links_of_kubernetes_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWAY_SERVER_PORT", "tcp://10.0.0.1:80")
    monkeypatch.setenv("LANEWAY_GRPC_PORT", "9000")
    settings = Settings.load()
    assert (settings.server_port, settings.grpc_port) == (8420, 9000)
