"""`laneway deploy …`"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import httpx2
import psycopg
import pytest

from tests.api.conftest import People
from tests.cli.conftest import PROGRAM, invoke
from tests.support.warm_program import WarmPopen

DEPLOY = Path(__file__).parents[2] / "deploy"
TEMPLATES = DEPLOY / "helm/laneway/templates"
APP = """
from laneway import Laneway

lw = Laneway()


@lw.handler("greet")
async def greet(ctx, name: str) -> str:
    return f"hello {name}"
"""
# The container's port by the variable that sets it, and what the process says when it listens.
PODS = {
    "server.yaml": (
        "LANEWAY_SERVER_PORT",
        ["server", "--no-open"],
        r"serving http://(\S+)",
    ),
    "workers.yaml": (
        "LANEWAY_METRICS_PORT",
        ["worker", "app:lw"],
        r"metrics at http://([^/]+)",
    ),
}


def test_copy_takes_directories_and_never_overwrites(tmp_path: Path) -> None:
    chart = tmp_path / "a/laneway"
    assert invoke("deploy", "copy", "helm/laneway/", tmp_path / "a").exit_code == 0
    source = DEPLOY / "helm/laneway"
    for each in source.rglob("*"):
        if each.is_file():
            assert (chart / each.relative_to(source)).read_bytes() == each.read_bytes()
    (chart / "values.yaml").write_text("mine")
    (chart / "Chart.yaml").unlink()
    refused = invoke("deploy", "copy", "helm/laneway", tmp_path / "a")
    assert (refused.exit_code, "exists" in refused.stderr) == (4, True)
    assert not (chart / "Chart.yaml").exists()
    assert (chart / "values.yaml").read_text() == "mine"
    assert invoke("deploy", "copy", "prometheus/alerts.yml", tmp_path).exit_code == 0
    assert (tmp_path / "alerts.yml").exists()


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    for words in (("copy", "helm/lane", tmp_path), ("show", "helm/laneway")):
        unknown = invoke("deploy", *words)
        assert (unknown.exit_code, "laneway deploy ls" in unknown.stderr) == (3, True)


def first_group(process: subprocess.Popen[str], pattern: str) -> str:
    """The first group of the pattern, from the output of the process."""
    assert process.stdout is not None
    output = ""
    for line in process.stdout:
        output += line
        if found := re.search(pattern, line):
            return found[1]
    raise AssertionError(output)


def answer(url: str) -> int:
    """The status of a probe: 200, or the last one within a minute."""
    deadline = time.monotonic() + 60
    while (status := httpx2.get(url).status_code) != 200 and time.monotonic() < deadline:
        pass
    return status


@pytest.mark.parametrize("template", PODS)
def test_probes_of_the_chart_are_answered_with_its_variables(
    template: str, dsn: str, tmp_path: Path
) -> None:
    text = (TEMPLATES / template).read_text("utf-8")
    port, command, listens = PODS[template]
    probes = set(re.findall(r"httpGet: \{path: (\S+), port: \w+\}", text))
    assert probes == {"/healthz", "/readyz"}
    assert f"name: {port}, value: {{{{" in text
    given: Mapping[str, str] = dict(re.findall(r'name: (LANEWAY_\w+), value: "?([\w.]+)"?\}', text))
    assert len(given) == text.count("value: 0.0.0.0") + text.count('value: "true"')
    (tmp_path / "app.py").write_text(APP)
    with psycopg.connect(dsn, autocommit=True) as conn:
        People(conn).new("ops", "operator")
    secrets = {"LANEWAY_DATABASE_URL": dsn, "LANEWAY_METRICS_TOKEN": "t" * 32}
    with WarmPopen(
        [*PROGRAM, *command],
        env={**os.environ, **given, **secrets, port: "0"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            host, _, number = first_group(process, listens).partition(":")
            assert host == "0.0.0.0"  # noqa: S104 -- where the kubelet asks
            url = f"http://127.0.0.1:{number}"
            assert {answer(url + path) for path in probes} == {200}
            process.send_signal(signal.SIGTERM)
            assert process.wait(100) == 0
        finally:
            process.kill()
