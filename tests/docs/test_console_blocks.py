"""Python blocks of the documents can be pasted into a console, such as `python -m asyncio`."""

from __future__ import annotations

import ast
import codeop

from tests.docs.test_code_blocks import Block, documents, read_blocks


def refused_line(block: Block) -> str | None:
    """The place of the first line that a console refuses; None if it takes all lines."""
    compiler = codeop.CommandCompiler()
    compiler.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    statement: list[str] = []
    # The reader presses Enter once more after an indented block at the end.
    for number, line in enumerate([*block.code.splitlines(), ""], block.line):
        statement.append(line)
        try:
            is_complete = compiler("\n".join(statement), "<console>", "single") is not None
        except SyntaxError as error:
            return f"{block.place} (line {number}): {error.msg}: {line}"
        if is_complete:
            statement.clear()
    return f"{block.place}: incomplete" if any(statement) else None


def test_console_takes_every_python_block_line_by_line() -> None:
    """A blank line ends an indented block there, and nothing else does."""
    blocks = [block for document in documents() for block in read_blocks(document)]
    typed = [block for block in blocks if block.language == "python" and block.title is None]
    assert any("await" in block.code for block in typed)
    assert [refused for block in typed if (refused := refused_line(block))] == []
