"""Build hook: the README for a package index, where relative links would lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = r"(?![a-z][a-z0-9+.-]*:|#)"
_IMAGE = re.compile(rf"(!\[[^\]]*\]\(){_RELATIVE}([^)\s]+)(\))", re.IGNORECASE)
_TAG = re.compile(rf'(\b(?:src|srcset)="){_RELATIVE}([^"\s]+)(")', re.IGNORECASE)
_LINK = re.compile(rf"(\]\(){_RELATIVE}([^)\s]+)(\))", re.IGNORECASE)


class IndexReadme(MetadataHookInterface):
    """Makes the relative links of README.md absolute, into the repository of `project.urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute_links(text, metadata["urls"]["Repository"]),
        }


def absolute_links(markdown: str, repository: str) -> str:
    """The text with links to files of the repository's main branch: pages, and raw pictures."""
    for pattern, kind in ((_IMAGE, "raw"), (_TAG, "raw"), (_LINK, "blob")):
        markdown = pattern.sub(rf"\g<1>{repository}/{kind}/main/\g<2>\g<3>", markdown)
    return markdown
