"""The documentation site: pages, navigation, generated reference and the check of links."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from scripts.site import llms
from scripts.site.api_names import MODULES, read_module
from scripts.site.api_pages import api_pages, as_markdown
from scripts.site.links import broken_links
from scripts.site.navigation import NotListed, navigation
from scripts.site.pages import ROOT, SOURCES, convert, documents, for_builder, write_pages

# Modules whose names are for users, and which the reference therefore covers completely.
WITH_NAMES = ("laneway", "laneway.testing", "laneway.http")


def pages(tmp_path: Path) -> dict[str, str]:
    return {**write_pages(tmp_path), **api_pages()}


def test_reference_has_every_public_name_with_words() -> None:
    entries = {name: read_module(name) for name in MODULES}
    for name in WITH_NAMES:
        exported = set(import_module(name).__all__) - {"__version__"}
        assert {entry.name for entry in entries[name]} == exported
    listed = [(name, one) for name in MODULES for each in entries[name] for one in each.walk()]
    assert [f"{name}.{entry.name}" for name, entry in listed if not entry.doc] == []


def test_reference_unpacks_options_and_shows_no_address_of_an_object() -> None:
    (application,) = [each for each in read_module("laneway") if each.name == "Laneway"]
    handler = {each.name: each for each in application.walk()}["Laneway.handler"]
    names = {each.name for each in handler.parameters}
    assert {"job_type", "lane", "max_retries", "timeout", "approval"} <= names
    assert [
        name for name, text in api_pages().items() if " at 0x" in text or "Annotated[" in text
    ] == []


def test_every_page_is_in_the_navigation(tmp_path: Path) -> None:
    found = pages(tmp_path)
    nav = navigation(found)
    listed = {page for page in found if not page.startswith(f"{SOURCES}/")}
    assert all(page in llms.index(nav, found) for page in listed)
    with pytest.raises(NotListed, match=r"howto/unlisted\.md"):
        navigation({**found, "howto/unlisted.md": "# Unlisted\n"})


def test_readmes_of_packages_and_caches_are_no_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("shop", "shop/.pytest_cache", "shop/node_modules/left"):
        (tmp_path / "examples" / folder).mkdir(parents=True)
        (tmp_path / "examples" / folder / "README.md").touch()
    monkeypatch.setattr("scripts.site.pages.ROOT", tmp_path)
    found = [each for each in documents() if each.startswith("examples/")]
    assert found == ["examples/shop/README.md"]


def test_links_lead_to_pages_and_to_shown_files() -> None:
    text = (
        "[a](docs/howto/README.md#x) [b](LICENSE) [c](src/laneway/errors.py) [d](https://x.example)"
    )
    assert convert(text, "README.md").split() == [
        "[a](howto/index.md#x)",
        "[b](license.md)",
        "[c](source/src/laneway/errors.py.md)",
        "[d](https://x.example)",
    ]
    assert "(../changelog.md)" in convert("[a](../../CHANGELOG.md)", "docs/howto/x.md")


def test_code_stays_as_it_is_and_marks_of_tests_go() -> None:
    block = "```python\nrow = grid[0](docs/README.md)\n```\n"
    page = convert(f"Words:\n- one\n\n<!-- run: skip because of rain -->\n{block}", "docs/x.md")
    assert page == f"Words:\n\n- one\n\n{block}"


def test_code_in_tables_shows_its_pipes() -> None:
    row = r"| `int \| None` | `a<b` | \| |"
    assert for_builder(row) == r"| <code>int &#124; None</code> | `a<b` | \| |"


def test_docstring_keeps_code_and_columns() -> None:
    shown = as_markdown("Do it.\n\n    first()\n\n    second()\n\nThen rest.")
    assert shown == "Do it.\n\n```text\nfirst()\n\nsecond()\n```\n\nThen rest."


@pytest.mark.parametrize(
    "body, problem",
    [
        ('<a href="missing/">x</a>', "no such page"),
        ('<a href="other/#nothing">x</a>', "no such heading"),
        ('<img src="picture.png">', "no such page"),
        ('<script src="https://cdn.example/x.js"></script>', "is on another host"),
        ('<link rel="stylesheet" href="//fonts.example/x.css">', "is on another host"),
    ],
)
def test_broken_link_is_found(tmp_path: Path, body: str, problem: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.html").write_text('<h1 id="there">x</h1>', "utf-8")
    good = '<a href="other/#there">x</a><a href="https://elsewhere.example">y</a>'
    (tmp_path / "index.html").write_text(good, "utf-8")
    assert broken_links(tmp_path) == []
    (tmp_path / "index.html").write_text(good + body, "utf-8")
    (found,) = broken_links(tmp_path)
    assert problem in found


def test_style_sheet_loads_nothing_from_another_host(tmp_path: Path) -> None:
    sheet = tmp_path / "x.css"
    sheet.write_text(
        "a { background: url(data:image/svg+xml,x) } b { mask: url(../x.svg) }", "utf-8"
    )
    assert broken_links(tmp_path) == []
    sheet.write_text(
        '@import "https://fonts.example/x.css"; a { src: url(//f.example/y) }', "utf-8"
    )
    assert len(broken_links(tmp_path)) == 2


def test_development_environment_has_no_builder() -> None:
    assert "zensical==" not in (ROOT / "requirements" / "dev.txt").read_text("utf-8")
