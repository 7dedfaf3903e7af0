"""Runs the program of a system in its environment."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from bench.peers.system import ROOT, System


class ProgramFailed(Exception):
    """A system's program ended with an error or took too long."""


def environment(system: System, variables: dict[str, str]) -> dict[str, str]:
    """An environment without settings of Laneway, PostgreSQL or Python from outside."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LANEWAY_", "PG", "PYTHON", "NODE_", "PEERS_"))
        and name not in ("DATABASE_URL", "REDIS_URL", "VIRTUAL_ENV")
    }
    return {**kept, "PYTHONPATH": str(ROOT), **system.variables, **variables}


def run_program(
    system: System, variables: dict[str, str], *arguments: str, within_s: float = 300.0
) -> dict[str, Any]:
    """Run a program to its end; return the line of JSON that it prints."""
    try:
        done = subprocess.run(
            system.run(*arguments),
            cwd=ROOT,
            env=environment(system, variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within_s,
        )
    except subprocess.TimeoutExpired:
        raise ProgramFailed(f"{system.name} {arguments[0]}: not done in {within_s:g} s") from None
    if done.returncode:
        raise ProgramFailed(f"{system.name} {arguments[0]} failed:\n{done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result
