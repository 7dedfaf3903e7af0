"""The process that runs the Python blocks of one document, in one namespace and one loop.

Reads a JSON object per line from stdin: `path`, `line`, `code`, and `module` when the block was
written to a file of that name. Answers `ok` or `failed` per line; all output goes to stderr.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import json
import os
import sys
import traceback
import types
from typing import Any


def run_block(block: dict[str, Any], main: types.ModuleType, loop: asyncio.Runner) -> None:
    if block["module"]:
        sys.modules.pop(block["module"], None)  # a later block may show a newer version of the file
        module = importlib.import_module(block["module"])
        main.__dict__.update({k: v for k, v in vars(module).items() if not k.startswith("__")})
        return
    # Padded, so that tracebacks and inspect.getsource point into the document.
    source = "\n" * (block["line"] - 1) + block["code"]
    code = compile(source, block["path"], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, main.__dict__)  # noqa: S307 - running our own documents is the purpose
    if inspect.iscoroutine(result):
        loop.run(result)


def serve() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    sys.path[0] = os.getcwd()
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main  # where type hints of the blocks are looked up
    with asyncio.Runner() as loop:
        for line in sys.stdin:
            try:
                run_block(json.loads(line), main, loop)
            except BaseException as error:
                traceback.print_exc()
                answers.write("failed\n")
                if not isinstance(error, Exception):
                    return
            else:
                answers.write("ok\n")
            finally:
                sys.stdout.flush()
