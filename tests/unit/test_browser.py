"""A browser opens only where a person sees it, and never disturbs the terminal."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from laneway.app import browser, server

LINK = "http://127.0.0.1:8420/login?link=lwl_secret"
SCREEN = {"DISPLAY": ":0"}


@pytest.mark.parametrize(
    "environ, platform, is_terminal, expected",
    [
        (SCREEN, "linux", True, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True, True),
        ({}, "darwin", True, True),
        ({}, "linux", True, False),
        ({"DISPLAY": ""}, "linux", True, False),
        (SCREEN, "linux", False, False),
        ({**SCREEN, "CI": "true"}, "linux", True, False),
        ({**SCREEN, "SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}, "linux", True, False),
        ({"SSH_TTY": "/dev/pts/0"}, "darwin", True, False),
    ],
)
def test_browser_opens_only_on_the_screen_of_a_person(
    environ: dict[str, str], platform: str, is_terminal: bool, expected: bool
) -> None:
    assert browser.can_open(environ, platform, is_terminal=is_terminal) is expected


def test_output_of_a_pipe_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/null", "w") as nowhere:
        monkeypatch.setattr(sys, "stdout", nowhere)
        assert not browser.can_open(SCREEN, "linux")


def test_opened_link_reaches_the_browser_and_prints_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho noise\nprintf %s "$1" > {tmp_path}/seen\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("BROWSER", str(program))
    monkeypatch.setattr(browser, "can_open", lambda: True)
    opening = browser.open_link(LINK)
    assert opening is not None
    opening.join(60)
    assert (tmp_path / "seen").read_text() == LINK
    assert capfd.readouterr() == ("", "")


def test_missing_browser_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "can_open", lambda: True)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    opening = browser.open_link(LINK)
    assert opening is not None
    opening.join(60)
    monkeypatch.setattr(browser, "can_open", lambda: False)
    assert browser.open_link(LINK) is None


@pytest.mark.parametrize("wanted", [True, False])
def test_login_link_is_printed_once_and_opened_on_request(
    monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    printed: list[str] = []
    opened: list[str] = []
    monkeypatch.setattr(server, "open_link", opened.append)
    server.print_link(printed.append, "http://127.0.0.1:8420", "lwl_secret", open_browser=wanted)
    assert printed == [f"log in within ten minutes, once: {LINK}"]
    assert opened == ([LINK] if wanted else [])
