"""The wheel and the sdist: what they declare and contain, and that the sdist needs no Node.js."""

from __future__ import annotations

import json
import re
import tarfile
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

from scripts.build_dashboard import SKIP
from scripts.compress import LEAST_BYTES
from scripts.core_install import build, rebuild
from scripts.extras import extras
from scripts.index_readme import absolute_links

ROOT = Path(__file__).resolve().parents[2]
STATIC = "laneway/api/static/"


def names_in(archive: Path) -> set[str]:
    if archive.suffix == ".whl":
        with ZipFile(archive) as wheel:
            return set(wheel.namelist())
    with tarfile.open(archive) as sdist:
        return {name.partition("/")[2] for name in sdist.getnames()}


def text_in(wheel: Path, name: str) -> str:
    with ZipFile(wheel) as archive:
        return archive.read(name).decode()


def test_wheel_declares_extras_urls_and_readme(wheel: Path) -> None:
    [name] = [one for one in names_in(wheel) if one.endswith(".dist-info/METADATA")]
    described = message_from_bytes(text_in(wheel, name).encode())
    assert set(described.get_all("Provides-Extra") or ()) == {*extras(), "dev"}
    urls = dict(line.split(", ", 1) for line in described.get_all("Project-URL") or ())
    assert {"Repository", "Documentation", "Changelog", "Issues"} <= set(urls)
    text = described.get_payload()
    assert isinstance(text, str)
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert f"]({urls['Repository']}/blob/main/docs/" in text
    pictures = re.findall(r'\b(?:src|srcset)="([^"]+)"', text)
    assert pictures, "the first screen has a picture"
    assert {
        one.removeprefix(f"{urls['Repository']}/raw/main/docs/images/") for one in pictures
    } == {
        "overview-dark.png",
        "overview-light.png",
    }


def test_links_of_the_readme_become_absolute() -> None:
    given = (
        "[a](b.md#c) [x](https://y.example/z) [s](#s) [![badge](i/b.png)](c.md) "
        '<img src="i/a.png"> <source srcset="i/d.png"> <img src="https://y.example/p.png">'
    )
    assert absolute_links(given, "https://r.example") == (
        "[a](https://r.example/blob/main/b.md#c) [x](https://y.example/z) [s](#s) "
        "[![badge](https://r.example/raw/main/i/b.png)](https://r.example/blob/main/c.md) "
        '<img src="https://r.example/raw/main/i/a.png"> '
        '<source srcset="https://r.example/raw/main/i/d.png"> '
        '<img src="https://y.example/p.png">'
    )


def test_sdist_contains_what_a_build_needs(sdist: Path) -> None:
    names = names_in(sdist)
    needed = (
        *("pyproject.toml", "README.md", "LICENSE", "deploy", f"src/{STATIC}index.html"),
        *("scripts/index_readme.py", "scripts/build_dashboard.py", "dashboard/package-lock.json"),
    )
    assert {one for one in needed if not any(name.startswith(one) for name in names)} == set()


def test_archives_contain_neither_packages_of_node_nor_generated_sources(
    wheel: Path, sdist: Path
) -> None:
    unwanted = re.compile(
        r"node_modules|^bench/latest|^dashboard/(dist|src/api/_generated)|\.stamp"
    )
    for archive in (wheel, sdist):
        assert [name for name in names_in(archive) if unwanted.search(name)] == []


def test_wheel_contains_the_dashboard_and_every_file_that_it_names(wheel: Path) -> None:
    names = names_in(wheel)
    page = text_in(wheel, f"{STATIC}index.html")
    files = re.findall(r'(?:href|src)="([^"]+)"', page)
    assert [name for name in files if not name.startswith("./")] == []
    assert {f"{STATIC}{name.removeprefix('./')}" for name in files} <= names
    scripts = [name.removeprefix("./") for name in files if name.endswith(".js")]
    large = [name for name in scripts if len(text_in(wheel, f"{STATIC}{name}")) >= LEAST_BYTES]
    assert large
    assert [name for name in large if f"{STATIC}{name}.gz" not in names] == []


def test_wheel_contains_the_licences_of_bundled_packages(wheel: Path) -> None:
    texts = text_in(wheel, f"{STATIC}licenses.md")
    package = json.loads((ROOT / "dashboard" / "package.json").read_text("utf-8"))
    assert {"react", "react-dom"} <= set(package["dependencies"])
    for name in ("react", "react-dom"):
        assert f"## {name} - {package['dependencies'][name]} (MIT)" in texts
    described = re.split(r"^## ", texts, flags=re.MULTILINE)[1:]
    without_text = [one.splitlines()[0] for one in described if len(one.split()) < 50]
    # The Unlicense demands no copy of its text.
    assert [one for one in without_text if not one.endswith("(Unlicense)")] == []


def test_sdist_builds_the_same_wheel_without_node(
    wheel: Path, sdist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The hook would call `sh`, which is not in this directory.
    monkeypatch.setenv("PATH", str(tmp_path))
    assert names_in(rebuild(sdist, tmp_path / "rebuilt")) == names_in(wheel)


def test_build_without_the_dashboard_starts_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SKIP, "1")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build("wheel", tmp_path / "wheel").is_file()
