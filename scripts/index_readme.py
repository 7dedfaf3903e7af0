"""Build hook: the README for a package index, where relative links would lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(\]\()(?![a-z][a-z0-9+.-]*:|#)([^)\s]+)(\))", re.IGNORECASE)


class IndexReadme(MetadataHookInterface):
    """Makes the relative links of README.md absolute, into the repository of `project.urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute_links(text, metadata["urls"]["Repository"]),
        }


def absolute_links(markdown: str, repository: str) -> str:
    """The text with links to files that are links to the repository's main branch."""
    return _LINK.sub(rf"\g<1>{repository}/blob/main/\g<2>\g<3>", markdown)
