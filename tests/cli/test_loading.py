"""Importing the application that a command names: each mistake is named with its place."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from laneway import Laneway
from laneway.app.loader import load_app
from laneway.errors import ConfigError

APP = "from laneway import Laneway\nlw = Laneway()\n"
HANDLER = "@{}.handler('greet')\nasync def greet(ctx) -> None: ...\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current directory; modules imported from it are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def failure(reference: str) -> str:
    with pytest.raises(ConfigError) as refused:
        load_app(reference)
    return str(refused.value)


@pytest.mark.parametrize(
    "files, reference, message",
    [
        (
            {"shop.py": "import os\nx = (1,\n"},
            "shop:lw",
            "import: shop.py, line 2: SyntaxError: '(' was never closed",
        ),
        (
            {"shop.py": "import os\nimport sparrow_client\n"},
            "shop",
            (
                "import: shop.py, line 2: ModuleNotFoundError: No module named"
                " 'sparrow_client'; is it installed in this environment?"
            ),
        ),
        (
            {"shop.py": "import mailng\n", "mailing.py": ""},
            "shop",
            (
                "import: shop.py, line 1: ModuleNotFoundError: No module named"
                " 'mailng'; did you mean mailing?"
            ),
        ),
        (
            {"shop.py": "\nimport mailing\n", "mailing.py": "\n\n1 / 0\n"},
            "shop:lw",
            (
                "import: mailing.py, line 3: ZeroDivisionError: division by"
                " zero (imported by shop.py, line 2)"
            ),
        ),
        (
            {"shop.py": "\nimport mailing\n", "mailing.py": "def f(:\n"},
            "shop:lw",
            (
                "import: mailing.py, line 1: SyntaxError: invalid syntax"
                " (imported by shop.py, line 2)"
            ),
        ),
        (
            {"shop.py": "import json\njson.loads('{')\n"},
            "shop:lw",
            "import: shop.py, line 2: JSONDecodeError: ",
        ),
        (
            {"shop/__init__.py": "import shop.core\n"},
            "shop.core:lw",
            ("import: shop/__init__.py, line 1: ModuleNotFoundError: No module named 'shop.core'"),
        ),
        ({"shop.py": APP}, "shop:lx", "shop has no Laneway named lx (found: lw)"),
        ({"shop.py": "x = 1\n"}, "shop", "shop has no Laneway named lw (it defines none)"),
        (
            {"shop.py": f"{APP}queue = 7\n"},
            "shop:queue",
            "shop:queue is not a Laneway instance but of type int (found: lw)",
        ),
        (
            {"shop.py": f"{APP}def make(): return Laneway()\n"},
            "shop:make",
            (
                "shop:make is a function, not a Laneway instance (found: lw): write 'shop:make()'"
                " if it returns one"
            ),
        ),
        (
            {},
            "shop:make(7)",
            (
                "passes arguments, which a reference cannot: write 'shop:make()' for a"
                " function without arguments"
            ),
        ),
        ({}, "shop.py", "names a file, but a module is needed: write shop:lw"),
        (
            {},
            "./src/shop.py:queue",
            "names a file, but a module is needed: write src.shop:queue",
        ),
        ({}, "src/shop:lw", "names a file, but a module is needed: "),
        (
            {},
            "../there/shop.py",
            ("names a file, but a module is needed: change to ../there and write shop:lw"),
        ),
        ({}, "my-shop:lw", "must be MODULE:NAME, such as app:lw"),
        ({}, "", "must be MODULE:NAME, such as app:lw"),
    ],
)
def test_reference_that_cannot_be_loaded_is_explained(
    folder: Path, files: dict[str, str], reference: str, message: str
) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    found = failure(reference).removeprefix(f"app {reference!r} ")
    assert found.replace("cannot be imported: ", "import: ").startswith(message)


def test_module_that_is_not_found_names_folder_and_similar_modules(folder: Path) -> None:
    message = failure("warehouse:lw")
    assert message == (
        f"app 'warehouse:lw': no module warehouse in {folder} or on sys.path: start the command in"
        " the folder that contains warehouse"
    )
    (folder / "warehouses.py").write_text(APP)
    assert failure("warehouse:lw").endswith("on sys.path; did you mean warehouses?")
    assert failure("warehouses.lw").endswith("on sys.path; did you mean warehouses:lw?")


def test_error_of_laneway_at_import_is_shown_with_its_place(folder: Path) -> None:
    (folder / "shop.py").write_text(f"{APP}\n__import__('laneway').RetryPolicy(base=-1)\n")
    assert failure("shop").startswith("app 'shop' cannot be imported: shop.py, line 4: ")
    (folder / "mart.py").write_text(
        "from laneway.errors import ConfigError\nraise ConfigError('mart.py:7: no good')\n"
    )
    assert failure("mart") == "mart.py:7: no good"


def test_name_may_be_an_attribute_of_an_object(folder: Path) -> None:
    (folder / "core.py").write_text(APP)
    (folder / "shop.py").write_text("import core\n")
    assert load_app("shop:core.lw") is load_app("core")


def test_application_may_be_made_by_a_function(folder: Path) -> None:
    (folder / "shop.py").write_text(
        f"{APP}async def late(): return lw\ndef make(): return Laneway()\n"
        "def needs(url): return lw\ndef broken(): raise OSError('no vault')\n"
    )
    assert isinstance(load_app("shop:make()"), Laneway)
    assert failure("shop:needs()").endswith(
        "needs cannot be called without arguments: missing a required argument: 'url'"
    )
    assert failure("shop:broken()").endswith("cannot be made: shop.py, line 6: OSError: no vault")
    assert failure("shop:late()").endswith("late must return a Laneway instance, not coroutine")
    assert failure("shop:mke()").endswith("shop has no function named mke")
    assert failure("shop:lw()").endswith("shop.lw is a Laneway, not a function")
    for unnamed in ("shop:()", "shop:(7)"):
        assert failure(unnamed).endswith(
            "names no function: write 'shop:NAME()', where NAME is a function without arguments"
        )


def test_application_without_handlers_says_why(folder: Path) -> None:
    (folder / "core.py").write_text(APP)
    assert load_app("core").handlers.why_empty == (
        "core:lw has no handlers: decorate functions with @lw.handler, and import the modules that"
        " do so in core"
    )
    (folder / "shop.py").write_text(f"{APP}queue = Laneway()\n{HANDLER.format('queue')}")
    assert load_app("shop").handlers.why_empty == (
        "shop:lw has no handlers, but shop:queue has: start that one, or use the same Laneway in"
        " all modules"
    )


@pytest.mark.parametrize(
    "policy, message",
    [
        ("below_cost=5", 'currency: is missing: an amount needs its currency, such as "USD"'),
        ("below_cost=5, currency='eur'", "currency: must be three capital letters, like USD,"),
        ("below_cost=-1, currency='EUR'", "below_cost: must be "),
        ("currency='EUR'", "currency: needs below_cost"),
        ("below_cost=5, currency='EUR', below_tokens=9", "below_tokens: give below_cost or below_"),
        ("below_costs=5", "TypeError: Approval.__init__() got an unexpected keyword argument"),
    ],
)
def test_mistake_in_an_approval_is_named_at_import_with_its_line(
    folder: Path, policy: str, message: str
) -> None:
    source = f"from laneway import Approval\n{APP}@lw.handler('x', approval=Approval({policy}))\n"
    (folder / "shop.py").write_text(source + "def x(ctx): ...\n")
    found = failure("shop:lw")
    assert found.startswith(f"app 'shop:lw' cannot be imported: shop.py, line 4: {message}")
