"""`laneway deploy …`"""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import invoke

DEPLOY = Path(__file__).parents[2] / "deploy"


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
