"""A page for each public module, generated from the code."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

from scripts.site.api_names import MODULES, Entry, Parameter, read_module

HEAD = "Generated from the code of this version.\n\n"
FOLDER = "reference/api"


def api_pages() -> dict[str, str]:
    """The texts of all pages by name, the index first."""
    modules = {name: read_module(name) for name in MODULES}
    pages = {f"{FOLDER}/index.md": render_index(modules)}
    for name, entries in modules.items():
        pages[f"{FOLDER}/{name}.md"] = render_module(name, entries)
    return pages


def render_index(modules: dict[str, list[Entry]]) -> str:
    lines = [
        "# Every public name",
        "",
        HEAD + "[Python](../python.md) explains them in their order of use.",
        "",
    ]
    for name, entries in modules.items():
        lines += [f"## [{name}]({name}.md)", "", first_sentence(module_doc(name)), ""]
        lines += ["| name | |", "| --- | --- |"]
        for entry in entries:
            link = f"[`{entry.name}`]({name}.md#{anchor(entry)})"
            lines.append(f"| {link} | {_cell(first_sentence(entry.doc))} |")
        lines.append("")
    return "\n".join(lines)


def render_module(name: str, entries: list[Entry]) -> str:
    parts = [f"# {name}\n", HEAD + as_markdown(module_doc(name)) + "\n"]
    parts += [render_entry(entry, 2) for entry in entries]
    return "\n".join(parts)


def render_entry(entry: Entry, level: int) -> str:
    parts = [f"{'#' * level} `{entry.name}` {{ #{anchor(entry)} }}\n"]
    parts.append(f"```python\n{entry.signature}\n```\n")
    if entry.doc:
        parts.append(as_markdown(entry.doc) + "\n")
    if entry.parameters:
        parts.append(
            _table(
                entry.parameters, "field" if entry.signature.startswith("class ") else "parameter"
            )
        )
    parts += [render_entry(member, level + 1) for member in entry.members]
    return "\n".join(parts)


def anchor(entry: Entry) -> str:
    return entry.name.lower()


def module_doc(name: str) -> str:
    return inspect.cleandoc(import_module(name).__doc__ or "")


def first_sentence(doc: str) -> str:
    return re.split(r"(?<=[.:])\s|\n\n", doc, maxsplit=1)[0].replace("\n", " ").rstrip(":")


def as_markdown(doc: str) -> str:
    """A docstring as Markdown: what is indented or laid out in columns is shown as it is."""
    blocks = re.split(r"\n\s*\n", doc)
    shown: list[str] = []
    code: list[str] = []
    for block in [*blocks, ""]:
        if block and (block.startswith("    ") or re.search(r"\S {2,}\S|[├└]", block)):
            code.append(block)
            continue
        if code:
            shown.append("```text\n" + inspect.cleandoc("\n\n".join(code)) + "\n```")
            code = []
        if block:
            shown.append(block)
    return "\n\n".join(shown)


def _table(parameters: tuple[Parameter, ...], word: str) -> str:
    has_doc = any(each.doc for each in parameters)
    head = f"| {word} | type | default |{' |' if has_doc else ''}\n"
    rule = "| --- | --- | --- |" + (" --- |" if has_doc else "") + "\n"
    rows = ""
    for each in parameters:
        type_ = f"`{each.type}`" if each.type else ""
        default = f"`{each.default}`" if each.default else ""
        row = f"| `{each.name}` | {_cell(type_)} | {_cell(default)} |"
        rows += row + (f" {_cell(each.doc)} |" if has_doc else "") + "\n"
    return head + rule + rows


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
