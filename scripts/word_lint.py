"""Find words that docs/style.md forbids: `python scripts/word_lint.py [--count] [PATH…]`.

Reads comments, docstrings and string literals of Python, comments of SQL and shell, and the prose
of Markdown. Names in code are not read, except those in FORBIDDEN_NAMES.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PLACES: Final = (
    *("src", "scripts", "examples", "bench", "README.md", "CONTRIBUTING.md", "docs/glossary.md"),
    *("docs/tutorial", "docs/howto", "docs/why", "docs/reference"),
    "tests",
)
# These quote the forbidden words.
EXEMPT: Final = ("docs/style.md", "scripts/word_lint.py", "tests/docs/test_word_lint.py")

FORBIDDEN: Final = (
    r"told",
    r"said",
    r"who(?:m)?ever",
    r"anew",
    r"of (?:its|their|his|her|one's|ones) own",
    r"(?:is|are|was) no (?!longer\b|more than\b|less than\b|\d)\w+",
    r"(?:is|are) so already",
    r"for so long",
    r"no path ends in",
    r"(?:he|him|his|himself)",
    r"(?:for|to|of|by|from|with|at) who",
    r"nobody|somebody|everybody",
)
# A landed migration never changes, nor does the record of a decision. A policy in users' databases
# keeps its name.
LANDED: Final = re.compile(r"store/migrations/\d{4}_|docs/adr/")
KEPT: Final = {"src/laneway/store/grants.py": "everybody"}
FORBIDDEN_NAMES: Final = frozenset({"told", "said", "whoever", "anew"})
OPENING: Final = re.compile(r"\s*(?:Who|What|Where|How|Whoever)\b")
WORDS: Final = re.compile(rf"\b(?:{'|'.join(FORBIDDEN)})\b", re.IGNORECASE)
# Most sources have neither; the others are split into tokens, which takes far longer.
SUSPECT: Final = re.compile(rf"""(?i:{WORDS.pattern})|["']{OPENING.pattern}""")
ONE_WORD: Final = re.compile(r"""["']\w*["']""")
CODE: Final = re.compile(r"`[^`\n]*`")
FENCE: Final = re.compile(r"^\s*(?:```|~~~)")
Finding = tuple[int, str]


def in_text(text: str, line: int) -> Iterator[Finding]:
    """Yield the forbidden words of a text with their lines; skip code in backticks."""
    for number, each in enumerate(CODE.sub("", text).split("\n"), line):
        yield from ((number, found[0]) for found in WORDS.finditer(each))


def in_python(source: str) -> Iterator[Finding]:
    """Check comments, strings, docstring openings and names."""
    if not (SUSPECT.search(source) or SUSPECT.search(CODE.sub("", source))):
        return
    is_start = True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.start[0]
        if token.type == tokenize.STRING and ONE_WORD.fullmatch(token.string):
            pass  # a name
        elif token.type == tokenize.STRING:
            if is_start and (opened := OPENING.match(token.string.lstrip("rRbBfFuU").strip("\"'"))):
                yield line, f"docstring opens with {opened[0].strip()}"
            yield from in_text(token.string, line)
        elif token.type == tokenize.COMMENT or token.type == getattr(
            tokenize, "FSTRING_MIDDLE", -1
        ):
            yield from in_text(token.string, line)
        elif token.type == tokenize.NAME and token.string in FORBIDDEN_NAMES:
            yield line, token.string
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            is_start = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def in_comments(source: str, mark: str) -> Iterator[Finding]:
    """Check the text after the mark that starts a comment."""
    for line, text in enumerate(source.split("\n"), 1):
        _, begun, comment = text.partition(mark)
        if begun:
            yield from in_text(comment, line)


def in_markdown(source: str) -> Iterator[Finding]:
    """Check prose; fenced blocks are code."""
    is_code = False
    for line, text in enumerate(source.split("\n"), 1):
        if FENCE.match(text):
            is_code = not is_code
        elif not is_code:
            yield from in_text(text, line)


def in_file(path: Path) -> list[Finding]:
    """All findings of a file, by its kind."""
    name, source = str(path.relative_to(ROOT)), path.read_text("utf-8")
    if name in EXEMPT or LANDED.search(name):
        return []
    if path.suffix == ".py":
        return [one for one in in_python(source) if KEPT.get(name) != one[1]]
    if path.suffix == ".sql":
        return list(in_comments(source, "--"))
    if path.suffix == ".sh":
        return list(in_comments(source, "#"))
    return list(in_markdown(source)) if path.suffix == ".md" else []


def files(places: list[str]) -> Iterator[Path]:
    """List the files of this repository under the given paths."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", *places],
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        if "_generated" not in name and (ROOT / name).is_file():
            yield ROOT / name


def main(arguments: list[str]) -> int:
    """Print the findings, or with --count their number; return the exit code."""
    places = [each for each in arguments if each != "--count"] or list(PLACES)
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in files(places)
        for line, what in in_file(path)
    ]
    sys.stdout.write(
        f"{len(found)}\n" if "--count" in arguments else "".join(f"{one}\n" for one in found)
    )
    return 0 if "--count" in arguments else bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
