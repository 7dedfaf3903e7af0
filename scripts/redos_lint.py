"""Find regular expressions that take more than linear time; fail if there are any.

    python -m scripts.redos_lint

Collects every call of `re` in src/laneway from the syntax tree. Matches each pattern the way its
module does, against strings made of the characters that the pattern names.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
import time
from dataclasses import dataclass, field
from itertools import permutations, product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "laneway"
# The functions of `re` with the position of their flags.
CALLS = {
    "compile": 1, "match": 2, "fullmatch": 2, "search": 2, "findall": 2, "finditer": 2,
    "split": 3, "sub": 4, "subn": 4,
}  # fmt: skip
# Values of local names that patterns are built from.
SAMPLES: dict[str, Any] = {"key": "requires", "word": "pa55word", "max_digits": 308}
META = "()?|^$*+[]{}."
# Offset that marks escaped characters while a pattern is split.
ESCAPED = 0xF0000
FEW = (16, 22, 28, 34)
FIRST, LAST = 64, 8_192
# Time ratio for a string eight times as long: linear is 8, quadratic 64.
MAX_RATIO = 28.0
# Quadratic time takes more than this for the longest string, also on a fast machine.
WORTH_A_LOOK_S = 0.003
TOO_LONG_S = 0.03
# The longest step, assuming that time grows with the fourth power.
MAX_STEP_S = 0.2


@dataclass
class Found:
    """A pattern, its location and the methods that match it."""

    place: str
    pattern: re.Pattern[Any]
    methods: set[str] = field(default_factory=set)


def collect(source: Path = SOURCE) -> list[Found]:
    """Collect all patterns; ValueError names a call whose pattern is only known at run time."""
    found = []
    for path in sorted(source.rglob("*.py")):
        if "_generated" in path.parts:
            continue
        tree = ast.parse(path.read_text("utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_re(node)]
        if not calls:
            continue
        parts = path.relative_to(source.parent).with_suffix("").parts
        module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
        uses = _uses(tree)
        where, names = path.relative_to(source.parents[1]), vars(module)
        found += [_pattern(one, names, uses, f"{where}:{one.lineno}") for one in calls]
    return found


def _is_re(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id="re"), attr=name):
            return name in CALLS
    return False


def _uses(tree: ast.AST) -> dict[str, set[str]]:
    """The methods that this module calls on each name."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
    for node in ast.walk(tree):
        # NAME = re.compile(...): the call is identified by its line.
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Call):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    found[f"line {node.value.lineno}"] = found.get(target.id, set())
    return found


def _pattern(call: Any, names: dict[str, Any], uses: dict[str, set[str]], place: str) -> Found:
    name = call.func.attr
    flags = call.args[CALLS[name] :]
    flags += [word.value for word in call.keywords if word.arg == "flags"]
    try:
        text, *given = (
            eval(compile(ast.Expression(one), place, "eval"), {**names, **SAMPLES})  # noqa: S307
            for one in (call.args[0], *flags[:1])
        )
    except Exception as error:
        raise ValueError(f"{place}: the pattern is only known at run time: {error}") from None
    pattern = text if isinstance(text, re.Pattern) else re.compile(text, *given)
    if name != "compile":
        return Found(place, pattern, {name})
    methods = uses.get(f"line {call.lineno}", set()) & CALLS.keys()
    return Found(place, pattern, methods or {"search", "fullmatch"})


def _source(pattern: re.Pattern[Any]) -> str:
    given = pattern.pattern
    return given if isinstance(given, str) else given.decode("latin-1")


def alphabet(pattern: re.Pattern[Any]) -> list[str]:
    """The characters that a pattern names, escaped ones first, and some of its classes."""
    text = _source(pattern)
    escaped = re.findall(r"\\([^A-Za-z0-9])", text)
    classes = "".join(re.findall(r"\[\^?([^\[\]]*)\]", text))
    plain = [char for char in text if char not in META]
    named = dict.fromkeys([*escaped, *plain, *(char for char in classes if char in META)])
    return list(dict.fromkeys([*list(named)[:16], "a", "1", " ", '"', "\\", "@", "\n"]))


def words(pattern: re.Pattern[Any]) -> list[str]:
    """The literal words of a pattern: hostile strings often repeat near matches."""
    # Escaped characters are literal: mark them while the syntax is removed.
    kept = re.sub(r"\\([^A-Za-z0-9])", lambda found: chr(ESCAPED + ord(found[1])), _source(pattern))
    plain = re.sub(r"\\[A-Za-z]|[\[\](){}?*+|^$\\]", " ", kept)
    found = (
        "".join(chr(ord(char) - ESCAPED) if ord(char) >= ESCAPED else char for char in word)
        for word in plain.split()
    )
    return [word for word in dict.fromkeys(found) if len(word) > 1][:8]


def shapes(pattern: re.Pattern[Any]) -> list[tuple[str, str, str]]:
    """Start, unit and end of hostile strings: repeated characters, pairs and words, a bad end."""
    chars, named = alphabet(pattern), words(pattern)
    units = [*chars, *named, *("".join(pair) for pair in permutations(chars[:6], 2))]
    units += [word + char for word, char in product(named[:4], chars[:4])]
    found = [("", unit, "\x00") for unit in units]
    found += [("\x00", unit, "") for unit in units]
    found += [(start, unit, "\x00") for start, unit in product([*named[:3], '"', "'"], chars[:8])]
    return list(dict.fromkeys(found))


def text_of(shape: tuple[str, str, str], size: int) -> str:
    start, unit, end = shape
    return start + unit * (size // len(unit)) + end


def seconds(found: Found, method: str, text: str) -> float:
    """Measure the processor time of one match; the best of three if it is slow."""
    given: Any = text.encode() if isinstance(found.pattern.pattern, bytes) else text
    use = getattr(found.pattern, method)
    arguments = (given[:0], given) if method in ("sub", "subn") else (given,)
    best = float("inf")
    for _ in range(3):
        began = time.thread_time()
        made = use(*arguments)
        if method == "finditer":
            for _one in made:
                pass
        best = min(best, time.thread_time() - began)
        if best < WORTH_A_LOOK_S:
            break
    return best


def problem(found: Found) -> str | None:
    """Describe the first string that takes more than linear time, if any."""
    every = shapes(found.pattern)
    for method in sorted(found.methods):
        # Exponential patterns show with few characters, and would not end with many.
        for size in FEW:
            for shape in every:
                if seconds(found, method, text_of(shape, size)) > TOO_LONG_S:
                    return f"{found.place}: {method} takes exponential time for {shape[1]!r}…"
        for shape in every:
            slow = _growth(found, method, shape)
            if slow is not None:
                return slow
    return None


def _growth(found: Found, method: str, shape: tuple[str, str, str]) -> str | None:
    """Grow a string in steps that stay short even if time grows with the fourth power."""
    size = FIRST
    while True:
        took = seconds(found, method, text_of(shape, size))
        if took > WORTH_A_LOOK_S and (
            took > MAX_RATIO * seconds(found, method, text_of(shape, size // 8))
        ):
            return (
                f"{found.place}: {method} takes {took * 1000:.0f} ms for {size} characters"
                f" like {text_of(shape, 24)!r}, more than linear"
            )
        if size >= LAST:
            return None
        steps = (step for step in (8, 4, 2) if took * step**4 < MAX_STEP_S)
        size = min(size * next(steps, 2), LAST)


def main() -> int:
    patterns = collect()
    problems = [text for text in map(problem, patterns) if text is not None]
    for text in problems:
        print(text)
    print(f"{len(patterns)} regular expressions, {len(problems)} not linear")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
