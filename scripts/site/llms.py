"""llms.txt (an index with a sentence for each page) and llms-full.txt (all pages)."""

from __future__ import annotations

import re

from scripts.site.navigation import Nav

HEAD = """# Laneway

> Durable background jobs for Python on PostgreSQL: lanes with exact slots, leases and fencing,
> approvals, schedules, a server with a dashboard, an HTTP API, gRPC and MCP. No broker.

Install with `pip install 'laneway[all]'`. Every Python, SQL and shell block of these pages is run
by a test. The links below lead to the Markdown of each page; llms-full.txt has all pages.
"""


def index(nav: Nav, pages: dict[str, str]) -> str:
    """The text of llms.txt."""
    lines = [HEAD]
    for section in nav:
        ((title, entries),) = section.items()
        lines += [f"## {title}", ""]
        for name, page in _flat({title: entries} if isinstance(entries, str) else entries):
            lines.append(f"- [{name}]({page}): {summary(pages[page])}")
        lines.append("")
    return "\n".join(lines)


def full(nav: Nav, pages: dict[str, str]) -> str:
    """The text of llms-full.txt, without the decisions and the changelog."""
    left_out = re.compile(r"adr/\d|changelog|license")
    listed = [page for section in nav for _, page in _flat(section)]
    return "\n\n---\n\n".join(pages[page].strip() for page in listed if not left_out.match(page))


def summary(text: str) -> str:
    """The first sentence of a page."""
    for block in re.split(r"\n\s*\n", text):
        if not re.match(r"\s*(#|<|```|\||!\[|Generated from)", block):
            plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(block.split()))
            return re.split(r"(?<=[.:])\s", plain.replace("**", ""), maxsplit=1)[0].rstrip(":")
    return ""


def _flat(entries: object) -> list[tuple[str, str]]:
    """The titles and pages of a part of the navigation, in order."""
    if isinstance(entries, list):
        return [pair for each in entries for pair in _flat(each)]
    found: list[tuple[str, str]] = []
    for title, value in entries.items() if isinstance(entries, dict) else ():
        found += [(title, value)] if isinstance(value, str) else _flat(value)
    return found
