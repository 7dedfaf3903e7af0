"""Check the links of built pages: their targets, fragments and resources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes that a browser loads without a click.
_RESOURCES = {"script": "src", "img": "src", "source": "srcset", "iframe": "src"}
_LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "manifest"}
# What a style sheet loads from another host.
_REMOTE = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")


@dataclass
class Page(HTMLParser):
    """The anchors, links and resources of one page."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if values.get(name))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in _RESOURCES and values.get(_RESOURCES[tag]):
            self.resources.append(values[_RESOURCES[tag]].split()[0])
        elif tag == "link" and _LOADED_LINKS & set(values.get("rel", "").split()):
            self.resources.append(values.get("href", ""))


class BuiltSite:
    """A built site, whose pages are parsed once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._pages: dict[Path, Page] = {}

    def page(self, path: Path) -> Page:
        if path not in self._pages:
            self._pages[path] = Page()
            self._pages[path].feed(path.read_text("utf-8"))
        return self._pages[path]

    def broken(self) -> Iterator[str]:
        """Each link whose target or fragment is missing, and each resource of another host."""
        for path in sorted(self.folder.rglob("*.html")):
            page, name = self.page(path), path.relative_to(self.folder)
            for link in page.links:
                if problem := self._problem(link, path):
                    yield f"{name}: {link} ({problem})"
            for resource in page.resources:
                parts = urlsplit(resource)
                if parts.scheme in ("http", "https") or parts.netloc:
                    yield f"{name}: {resource} (is on another host)"
                elif problem := self._problem(resource, path):
                    yield f"{name}: {resource} ({problem})"
        for path in sorted(self.folder.rglob("*.css")):
            for resource in _REMOTE.findall(path.read_text("utf-8")):
                yield f"{path.relative_to(self.folder)}: {resource} (is on another host)"

    def _problem(self, link: str, path: Path) -> str | None:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return None
        # The page for missing pages is served at any depth, so its links are absolute.
        base = self.folder if parts.path.startswith("/") else path.parent
        target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
        if target.is_dir():
            target /= "index.html"
        if not target.is_file():
            return "no such page"
        has_anchors = parts.fragment and target.suffix == ".html"
        if has_anchors and unquote(parts.fragment) not in self.page(target).anchors:
            return "no such heading"
        return None


def broken_links(site: Path) -> list[str]:
    """Describe every broken link of a built site."""
    return [*BuiltSite(site).broken()]
