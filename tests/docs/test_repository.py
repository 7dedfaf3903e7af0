"""Laws about the files of the repository."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "laneway"
NOT_OURS = {".git", ".venv", ".cache", "node_modules", "__pycache__", "dist"}

MACHINE_PATH = re.compile(r"(?<![\w.~$}/-])/(?:work|root|home/[a-z]\w*)/")
TEMPORARY_PATH = re.compile(r"(?<![\w.~$}/-])/tmp/")
REGISTRY = re.compile(r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)", re.IGNORECASE)
HTML_LINK = re.compile(r'\b(?:href|src|srcset)="([^"\s]+)"')
LONGEST_MODULE = 400
LARGEST_PICTURE = 200_000
ADR_HEADINGS = ["Context", "Decision", "Alternatives", "Consequences", "Revisit when"]


@cache
def files() -> list[Path]:
    """All files that are, or would be, committed; in an unpacked archive, all of ours."""
    git = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(git, capture_output=True, check=True).stdout.decode().split("\0")
        found = [ROOT / name for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        found = list(ROOT.rglob("*"))
    ours = (path for path in found if not NOT_OURS & {*path.relative_to(ROOT).parts})
    return sorted(path for path in ours if path.is_file())


@cache
def texts() -> dict[Path, str]:
    """The text files by their path below the root."""
    found = {}
    for path in files():
        with suppress(UnicodeDecodeError):
            found[path.relative_to(ROOT)] = path.read_text("utf-8")
    return found


def lines_with(pattern: re.Pattern[str]) -> Iterator[tuple[Path, int, str]]:
    for path, text in texts().items():
        # Nearly every file has none: look at its lines only if it has one.
        if pattern.search(text):
            for number, line in enumerate(text.splitlines(), 1):
                if pattern.search(line):
                    yield path, number, line


def modules() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if "_generated" not in path.parts]


def markdown() -> list[Path]:
    return [path for path in files() if path.suffix == ".md"]


def decisions() -> list[Path]:
    return sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))


def headings(document: Path) -> list[str]:
    tokens = MarkdownIt().parse(document.read_text("utf-8"))
    return [text.content for mark, text in pairwise(tokens) if mark.type == "heading_open"]


@cache
def anchors(document: Path) -> set[str]:
    """The fragments by which headings are linked, as common Markdown hosts build them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings(document)
    }


@cache
def links(document: Path) -> tuple[str, ...]:
    def walk(tokens: list[Token]) -> Iterator[str]:
        for token in tokens:
            for name in ("href", "src"):
                if target := token.attrGet(name):
                    yield str(target)
            if token.type in ("html_block", "html_inline"):
                yield from HTML_LINK.findall(token.content)
            yield from walk(token.children or [])

    return tuple(walk(MarkdownIt().enable("table").parse(document.read_text("utf-8"))))


def test_no_file_names_a_path_of_one_machine() -> None:
    found = [
        f"{path}:{number}: {line.strip()}"
        for pattern, allowed in ((MACHINE_PATH, set()), (TEMPORARY_PATH, {"tests", "bench"}))
        for path, number, line in lines_with(pattern)
        if path.parts[0] not in allowed
    ]
    assert found == []


def test_no_file_names_a_package_registry() -> None:
    found = [f"{path}:{number}" for path, number, _ in lines_with(REGISTRY)]
    assert found == []


def test_locks_name_no_address_and_hash_every_package() -> None:
    locks = sorted((ROOT / "requirements").rglob("*.txt"))
    assert {"dev.txt", "runtime.txt"} <= {lock.name for lock in locks}
    for lock in locks:
        text = lock.read_text("utf-8")
        assert "://" not in text, lock.name
        pinned = re.findall(r"^[a-z0-9].*", text, re.MULTILINE)
        assert pinned, lock.name
        assert [line for line in pinned if "==" not in line or not line.endswith("\\")] == []


def test_development_lock_contains_runtime_lock() -> None:
    def versions(name: str) -> set[str]:
        lock = (ROOT / "requirements" / name).read_text("utf-8")
        return set(re.findall(r"^[a-z0-9][^ ]*==[^ ]+", lock, re.MULTILINE))

    assert versions("runtime.txt") - versions("dev.txt") == set()


def test_readme_is_read_in_three_minutes() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 700


def test_every_decision_is_in_the_index_with_its_status() -> None:
    index = (ROOT / "docs" / "adr" / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| *\[?(\d{4})\b.*\| *(.+?) *\|$", index, re.MULTILINE)
    assert [number for number, _ in rows] == [path.name[:4] for path in decisions()]
    assert [path.name for path in decisions() if f"({path.name})" not in index] == []
    statuses = re.compile(r"proposed|accepted|superseded by .*\d{4}.*")
    assert [row for row in rows if not statuses.fullmatch(row[1])] == []


def test_every_decision_has_the_five_headings_in_order() -> None:
    wrong = {
        path.name: found
        for path in decisions()
        if (found := [text for text in headings(path) if text in ADR_HEADINGS]) != ADR_HEADINGS
    }
    assert wrong == {}


def test_every_relative_link_resolves() -> None:
    broken = []
    for document in markdown():
        for link in links(document):
            path, _, fragment = link.partition("#")
            if re.match(r"[a-z][a-z0-9+.-]*:|//", link):
                continue
            target = (document.parent / unquote(path)).resolve() if path else document
            if not target.exists():
                broken.append(f"{document.relative_to(ROOT)}: {link}")
            elif fragment and target.suffix == ".md" and fragment not in anchors(target):
                broken.append(f"{document.relative_to(ROOT)}: {link} (no such heading)")
    assert broken == []


def test_pictures_of_documents_are_small_and_all_are_shown() -> None:
    shown = {
        (document.parent / link).resolve()
        for document in markdown()
        for link in links(document)
        if link.endswith(".png")
    }
    pictures = {*(ROOT / "docs" / "images").iterdir()}
    assert pictures == shown
    assert [path.name for path in pictures if path.stat().st_size > LARGEST_PICTURE] == []


def test_changelog_has_an_unreleased_section() -> None:
    assert "[Unreleased]" in headings(ROOT / "CHANGELOG.md")


def test_source_has_no_todo() -> None:
    unfinished = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
    found = [
        f"{path}:{number}: {line.strip()}"
        for path, number, line in lines_with(unfinished)
        if path.parts[0] == "src"
    ]
    assert found == []


def test_no_module_is_longer_than_400_lines() -> None:
    """At 400 lines look for the second noun."""
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in modules()}
    too_long = {str(p.relative_to(ROOT)): n for p, n in lengths.items() if n >= LONGEST_MODULE}
    assert too_long == {}


def test_every_package_opens_with_a_map() -> None:
    packages = {path.parent for path in modules()}
    assert [p for p in sorted(packages) if not (p / "__init__.py").is_file()] == []
    inits = [path for path in modules() if path.name == "__init__.py"]
    silent = [p for p in inits if not ast.get_docstring(ast.parse(p.read_text("utf-8")))]
    assert [str(path.relative_to(ROOT)) for path in silent] == []


def test_every_statement_starts_with_its_guarantee() -> None:
    statements = sorted((SOURCE / "store" / "sql").rglob("*.sql"))
    silent = [path for path in statements if not path.read_text("utf-8").startswith("-- ")]
    assert [str(path.relative_to(ROOT)) for path in silent] == []
