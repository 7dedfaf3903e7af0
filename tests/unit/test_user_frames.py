"""Tracebacks in logs show the user's frames."""

from __future__ import annotations

import json
import sysconfig
import traceback
from pathlib import Path

import laneway
from laneway.engine.run.user_frames import MAX_CHARACTERS, cut_traceback, is_foreign, is_own

STANDARD = sysconfig.get_path("stdlib")
INSTALLED = sysconfig.get_path("purelib")
LANEWAY = Path(laneway.__file__).parent


def test_frame_belongs_to_user_unless_laneway_or_a_library_has_it() -> None:
    assert is_own("/srv/shop/tasks.py", "shop.tasks")
    assert is_own("<stdin>", "__main__")
    assert not is_own(f"{STANDARD}/json/decoder.py", "shop.tasks")
    assert not is_own(f"{INSTALLED}/httpx/_client.py", "shop.tasks")
    assert not is_own(f"{LANEWAY}/engine/run/executor.py", "shop.tasks")
    assert not is_own("<frozen importlib._bootstrap>", "shop.tasks")


def test_installed_application_and_handlers_of_laneway_are_own() -> None:
    assert is_own(f"{INSTALLED}/shop/tasks.py", "shop.main")
    assert is_own(f"{INSTALLED}/shop.py", "shop")
    assert is_own(f"{LANEWAY}/demo/app.py", "laneway.demo.app")
    assert not is_own(f"{LANEWAY}/engine/run/executor.py", "laneway.demo.app")


def test_laneway_and_the_standard_library_are_known_on_any_host() -> None:
    assert is_foreign("/srv/shop/tasks.py")
    assert is_foreign("/opt/venv/lib/python3.12/site-packages/httpx/_client.py")
    assert is_foreign(f"{LANEWAY}/demo/app.py")
    assert not is_foreign(f"{LANEWAY}/engine/run/executor.py")
    assert not is_foreign("/opt/venv/lib/python3.12/site-packages/laneway/engine/worker.py")
    assert not is_foreign("/usr/lib/python3.13/concurrent/futures/thread.py")
    assert not is_foreign("<frozen importlib._bootstrap>")


def frame(path: str, name: str) -> str:
    return f'  File "{path}", line 3, in {name}\n    {name}()\n    ~~~~^^\n'


def test_cut_traceback_keeps_own_frames_and_each_error_of_a_chain() -> None:
    text = (
        "Traceback (most recent call last):\n"
        + frame(f"{INSTALLED}/httpcore/_sync.py", "connect")
        + frame(f"{INSTALLED}/httpcore/_tcp.py", "dial")
        + "httpcore.ConnectError: refused\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        + frame(f"{LANEWAY}/engine/run/executor.py", "run")
        + frame("/srv/shop/tasks.py", "fetch")
        + frame(f"{INSTALLED}/httpx/_client.py", "send")
        + "httpx.ConnectError: refused\n"
    )
    assert cut_traceback(text, "shop.tasks") == "\n".join(
        (
            "    Traceback (most recent call last):",
            f'      File "{INSTALLED}/httpcore/_tcp.py", line 3, in dial',
            "        dial()",
            "        ~~~~^^",
            "    httpcore.ConnectError: refused",
            "    The above exception was the direct cause of the following exception:",
            "    Traceback (most recent call last):",
            '      File "/srv/shop/tasks.py", line 3, in fetch',
            "        fetch()",
            "        ~~~~^^",
            "    httpx.ConnectError: refused",
        )
    )


def test_cut_traceback_of_a_group_keeps_own_frames() -> None:
    def fails() -> None:
        json.loads("{")

    try:
        try:
            fails()
        except ValueError as error:
            raise ExceptionGroup("several", [error]) from None
    except ExceptionGroup as group:
        cut = cut_traceback("".join(traceback.format_exception(group)), __name__)
    assert f'File "{__file__}"' in cut
    assert "in fails" in cut
    assert "json/decoder.py" not in cut
    assert "ExceptionGroup: several" in cut
    assert "JSONDecodeError" in cut


def test_error_cannot_forge_a_log_line() -> None:
    text = f"{frame('/srv/shop.py', 'f')}ValueError: x\n2026-01-01 INFO all is well\x1b[2J\n"
    lines = cut_traceback(text, "shop").splitlines()
    assert lines[-1] == "    2026-01-01 INFO all is well\\x1b[2J"
    assert all(line.startswith("    ") for line in lines)


def test_long_traceback_is_cut_in_the_middle() -> None:
    text = "".join(frame("/srv/shop.py", f"f{n}") for n in range(1000)) + "ValueError: last\n"
    cut = cut_traceback(text, "shop")
    assert len(cut) <= MAX_CHARACTERS + 10
    assert "in f0" in cut
    assert "\n    …\n" in cut
    assert cut.endswith("ValueError: last")
