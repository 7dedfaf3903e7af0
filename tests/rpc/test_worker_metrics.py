"""The metrics of remote workers, served as those of any worker."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from laneway.app import worker_process
from laneway.app.remote_worker import make_endpoint, run_remote_worker
from laneway.errors import ConfigError
from tests.rpc.scripted_server import TOKEN


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "afar.py").write_text("from laneway import Laneway\n\nlw = Laneway()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "afar", raising=False)
    # What a program sets for its handlers is not for the tests after it.
    monkeypatch.setattr(os, "environ", dict(os.environ))
    return "afar:lw"


def test_process_whose_port_is_taken_works_without_telling(
    app: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker_process, "run_worker_process", lambda *given: 0)
    link = make_endpoint("127.0.0.1:1", TOKEN)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match="metrics_port: cannot listen"):
            run_remote_worker(app, link, options=[], metrics_port=port)
        os.environ["LANEWAY_SUPERVISOR_FDS"] = "0,0,0"
        assert run_remote_worker(app, link, options=[], metrics_port=port) == 0
    assert "continues without serving metrics" in caplog.text


def test_metrics_off_loopback_need_a_token_before_any_process_is_started(
    app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "Supervisor", None)
    os.environ["LANEWAY_METRICS_HOST"] = "0.0.0.0"  # noqa: S104 - to be refused
    with pytest.raises(ConfigError, match="set LANEWAY_METRICS_TOKEN"):
        run_remote_worker(
            app, make_endpoint("127.0.0.1:1", TOKEN), options=[], processes=2, metrics_port=0
        )
