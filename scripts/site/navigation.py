"""The sections of the site; the index page of a section gives the order of its pages."""

from __future__ import annotations

import json
import re
from posixpath import dirname, normpath

from scripts.site.api_pages import FOLDER
from scripts.site.pages import SOURCES, title_of

# Sections in their order: title, and the folder whose index page lists the pages.
SECTIONS = (
    ("Tutorial", "tutorial"),
    ("Examples", "examples"),
    ("How to", "howto"),
    ("Coming from", "coming-from"),
    ("Reference", "reference"),
    ("Why", "why"),
    ("Decisions", "adr"),
)
PROJECT = ("changelog.md", "contributing.md", "style.md", "security.md", "license.md")

_LINK = re.compile(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)")

Nav = list[dict[str, object]]


class NotListed(Exception):
    """Pages that no index page of their section names."""


def navigation(pages: dict[str, str]) -> Nav:
    """Every page in its place; raise NotListed if one has none."""
    api = [name for name in pages if name.startswith(f"{FOLDER}/")]
    placed: set[str] = {"index.md", *api}
    sections: Nav = [{"Laneway": "index.md"}]
    for title, folder in SECTIONS:
        index = f"{folder}/index.md"
        listed = [index] if index in pages else []
        for found in _LINK.findall(pages[index]):
            page = normpath(f"{folder}/{found}")
            if page in pages and page not in placed | set(listed) and _belongs(page, folder):
                listed.append(page)
        placed.update(listed)
        entries: list[object] = [_entry(page, pages) for page in listed]
        if folder == "reference":
            entries.append({"Every public name": [_entry(page, pages) for page in api]})
        sections.append({title: entries})
    placed.update(PROJECT)
    sections.append({"Project": [_entry(page, pages) for page in PROJECT]})
    placed.update(page for page in pages if page.startswith(f"{SOURCES}/"))
    if missing := sorted(pages.keys() - placed):
        raise NotListed(f"no index page names {', '.join(missing)}")
    return sections


def _belongs(page: str, folder: str) -> bool:
    """Whether a page is in the folder, an index below it, or in docs/ and listed here first."""
    own = dirname(page) == folder or (
        dirname(dirname(page)) == folder and page.endswith("/index.md")
    )
    return own or (dirname(page) == "" and page not in PROJECT)


def _entry(page: str, pages: dict[str, str]) -> dict[str, str]:
    is_overview = page.endswith("/index.md") and not page.startswith("examples/")
    return {"Overview" if is_overview else title_of(pages[page]): page}


def as_toml(value: object) -> str:
    """Lists, tables and texts as a TOML value."""
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(k)} = {as_toml(v)}" for k, v in value.items())
        return "{ " + inner + " }"
    return json.dumps(value)
