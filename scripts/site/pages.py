"""README and docs/ as pages of the site."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Repository"]
# Files outside docs/ that are pages too.
ROOT_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "LICENSE": "license.md",
}

# The folder of pages that show other files of the repository.
SOURCES = "source"
LANGUAGES = {
    ".ipynb": "json",
    ".json": "json",
    ".py": "python",
    ".sh": "bash",
    ".sql": "sql",
    ".toml": "toml",
    ".ts": "typescript",
    ".yaml": "yaml",
    ".yml": "yaml",
}

_MARKER = re.compile(r"^<!--\s*run:.*?-->\n+", re.MULTILINE | re.DOTALL)
_PIPED = re.compile(r"`([^`]*\\\|[^`]*)`")
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)
_LINK = re.compile(r"(?<=\]\()[^)\s]+(?=\))")
# Drawing it would load a script from another host.
_MERMAID = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ATTRIBUTE = re.compile(r'(?<=\bsrc=")[^"\s]+(?=")|(?<=\bsrcset=")[^"\s]+(?=")')


def page_name(path: str) -> str | None:
    """The page of a file of the repository, or None if the site has none."""
    if path in ROOT_PAGES:
        return ROOT_PAGES[path]
    place = PurePosixPath(path)
    if place.parts[0] == "examples" and place.name == "README.md":
        return str(place.with_name("index.md"))
    if place.parts[0] != "docs":
        return f"{SOURCES}/{path}.md" if (ROOT / path).is_file() else None
    inside = place.relative_to("docs")
    return str(inside.with_name("index.md") if inside.name == "README.md" else inside)


def documents() -> Iterator[str]:
    """The files of the repository that become pages or resources of pages."""
    yield from ROOT_PAGES
    for path in sorted((ROOT / "examples").glob("**/README.md")):
        inside = path.relative_to(ROOT)
        # Of packages and of caches, such as .pytest_cache.
        if not any(part == "node_modules" or part.startswith(".") for part in inside.parts):
            yield inside.as_posix()
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.is_file():
            yield path.relative_to(ROOT).as_posix()


def write_pages(target: Path) -> dict[str, str]:
    """Write every page below `target`; return the texts of the Markdown pages by name."""
    written: dict[str, str] = {}
    for source in documents():
        name = page_name(source) or source
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".md"):
            written[name] = convert((ROOT / source).read_text("utf-8"), source)
            (target / name).write_text(for_builder(written[name]), "utf-8")
        else:
            shutil.copyfile(ROOT / source, target / name)
    for name in sorted(_linked_sources(written)):
        written[name] = show_source(name.removeprefix(f"{SOURCES}/").removesuffix(".md"))
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(written[name], "utf-8")
    return written


def show_source(path: str) -> str:
    """The page of a file of the repository that other pages link."""
    language = LANGUAGES.get(PurePosixPath(path).suffix, "text")
    code = (ROOT / path).read_text("utf-8").rstrip()
    return f"# {path}\n\n````{language}\n{code}\n````\n"


def _linked_sources(pages: dict[str, str]) -> set[str]:
    links = {
        normpath((PurePosixPath(page).parent / link.partition("#")[0]).as_posix())
        for page, text in pages.items()
        for link in _LINK.findall(text)
        if not _ABSOLUTE.match(link)
    }
    return {link for link in links if link.startswith(f"{SOURCES}/")}


def convert(text: str, source: str) -> str:
    """The text of a file as a page: links between pages, no marks of tests."""
    if source == "LICENSE":
        return f"# Licence\n\n```text\n{text.strip()}\n```\n"
    text = _separate_lists(_MARKER.sub("", text), source)
    text = re.sub(r"\]\(\n\s*", "](", text)  # a link that continues on the next line
    text = _MERMAID.sub(
        r'<details markdown="1"><summary>As Mermaid</summary>\n\n```text\n\1```\n\n</details>', text
    )
    page = page_name(source) or source

    def link(found: re.Match[str]) -> str:
        return _page_link(found.group(), source, page)

    return _outside_code(text, lambda line: _ATTRIBUTE.sub(link, _LINK.sub(link, line)))


def for_builder(text: str) -> str:
    """The text with `\\|` in code of tables as the site's Markdown needs it."""
    lines = text.split("\n")
    return "\n".join(_PIPED.sub(_code, line) if line.startswith("|") else line for line in lines)


def _code(found: re.Match[str]) -> str:
    shown = escape(found[1], quote=False).replace(r"\|", "&#124;")
    return f"<code>{shown}</code>"


def title_of(text: str) -> str:
    """The first heading of a page."""
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1].replace("`", "") if found else ""


def _page_link(link: str, source: str, page: str) -> str:
    if _ABSOLUTE.match(link):
        return link
    path, mark, fragment = link.partition("#")
    wanted = normpath((PurePosixPath(source).parent / path).as_posix())
    target = page_name(wanted)
    if target is None:
        return f"{REPOSITORY}/blob/main/{wanted}{mark}{fragment}"
    return f"{relpath(target, PurePosixPath(page).parent)}{mark}{fragment}"


def _separate_lists(text: str, source: str) -> str:
    """The text with a blank line before each list, which the site's Markdown needs."""
    lines = text.splitlines()
    begins = set()
    for token in MarkdownIt().enable("table").parse(text):
        if token.map is None:
            continue
        if token.level >= 2 and token.type in ("fence", "bullet_list_open", "ordered_list_open"):
            raise ValueError(f"{source}:{token.map[0] + 1}: the site cannot show a nested block")
        if token.type in ("bullet_list_open", "ordered_list_open"):
            begins.add(token.map[0])
    separated = []
    for number, line in enumerate(lines):
        if number in begins and number and lines[number - 1].strip():
            separated.append("")
        separated.append(line)
    return "\n".join(separated) + "\n"


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    changed, fence = [], ""
    for line in text.splitlines(keepends=True):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
            changed.append(line)
        elif mark:
            fence = mark[1]
            changed.append(line)
        else:
            changed.append(change(line))
    return "".join(changed)
