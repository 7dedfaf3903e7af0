"""Build the site and check it: `make site`.

Prints docs_snippets_run, docs_snippets_skipped and links_broken, also to bench/latest/site.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.site import llms, snippets
from scripts.site.api_pages import api_pages
from scripts.site.links import broken_links
from scripts.site.navigation import Nav, as_toml, navigation
from scripts.site.pages import ROOT, for_builder, write_pages

FOLDER = ROOT / "build" / "site"
BUILDER = ROOT / ".venv-site" / "bin" / "zensical"
CONFIG = Path(__file__).with_name("zensical.toml")
STYLE = Path(__file__).with_name("extra.css")
FIGURES = ROOT / "bench" / "latest" / "site.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="do not run the code blocks")
    arguments, of_pytest = parser.parse_known_args()
    nav, pages = prepare()
    if not build():
        return 1
    publish_text(nav, pages)
    html = FOLDER / "html"
    broken = broken_links(html)
    for link in broken:
        print(f"broken: {link}", file=sys.stderr)
    counted = snippets.count()
    has_run = not arguments.quick and snippets.run(of_pytest)
    figures = {
        "docs_snippets_run": counted.run if has_run else 0,
        "docs_snippets_skipped": counted.skipped,
        "links_broken": len(broken),
        "pages": len(list(html.rglob("*.html"))),
    }
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    print(f"the site is in {html.relative_to(ROOT)}")
    for name, value in figures.items():
        print(f"[{name}] {value}")
    return int(bool(broken) or not (has_run or arguments.quick))


def prepare() -> tuple[Nav, dict[str, str]]:
    """Write the pages and the builder's configuration."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    target = FOLDER / "pages"
    pages = write_pages(target)
    for name, text in api_pages().items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(for_builder(text), "utf-8")
        pages[name] = text
    nav = navigation(pages)
    shutil.copyfile(STYLE, target / STYLE.name)
    text = CONFIG.read_text("utf-8")
    (FOLDER / CONFIG.name).write_text(text.replace('"NAVIGATION"', as_toml(nav)), "utf-8")
    return nav, pages


def build() -> bool:
    # Its cache is part of the folder, so nothing of an earlier build remains.
    command = [str(BUILDER), "build", "--strict", "--config-file", CONFIG.name]
    return (
        subprocess.run(
            command, cwd=FOLDER, env={**os.environ, "NO_COLOR": "1"}, check=False
        ).returncode
        == 0
    )


def publish_text(nav: Nav, pages: dict[str, str]) -> None:
    """Write llms.txt, llms-full.txt and the Markdown of each page beside its HTML."""
    html = FOLDER / "html"
    (html / "llms.txt").write_text(llms.index(nav, pages), "utf-8")
    (html / "llms-full.txt").write_text(llms.full(nav, pages), "utf-8")
    for name, text in pages.items():
        (html / name).write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
