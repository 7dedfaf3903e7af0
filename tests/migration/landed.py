"""Every version that has landed, from the history of this repository: its code and its statements.

When a version has landed, add its commit at the end. From then on its functions and views are what
they are: a change of them comes with a new migration.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg.pq import ExecStatus

ROOT = Path(__file__).resolve().parents[2]
LANDED = (
    "27b4824",
    "9c75547",
    "146ef72",
    "ca1cf61",
    "8f14018",
    "7c35c6b",
    "e29a9c7",
    "5a31e4b",
    "9bc158f",
    "3ebb0b2",
    "f7997f6",
    "fc68726",
    "8475f5c",
    "0f2428d",
    "91185a0",
    "398d6ff",
    "1706246",
    "6038b96",
    "99f8678",
)
LAST = LANDED[-1]
Described = tuple[list[tuple[str, int]], list[int]]  # columns, types of parameters


class HistoryMissing(Exception):
    """The clone does not contain a landed version."""


class Code:
    """The source of one version."""

    def __init__(self, commit: str, home: Path) -> None:
        self.commit = commit
        self.source = home / commit / "src"
        if not self.source.exists():
            self._extract(home / commit)

    @classmethod
    def now(cls) -> Code:
        """The version under test."""
        code = cls.__new__(cls)
        code.commit, code.source = "now", ROOT / "src"
        return code

    def _extract(self, to: Path) -> None:
        command = ["git", "-C", str(ROOT), "archive", self.commit, "src/laneway"]
        made = subprocess.run(command, capture_output=True, check=False)
        if made.returncode != 0:
            raise HistoryMissing(
                f"commit {self.commit} is missing ({made.stderr.decode().strip()}): upgrades are"
                " tested from every landed version; clone with the whole history"
                " (`git fetch --unshallow`)"
            )
        with tarfile.open(fileobj=io.BytesIO(made.stdout)) as archive:
            archive.extractall(to, filter="data")

    def environment(self, dsn: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("LANEWAY_", "PG"))}
        return {**kept, "LANEWAY_DATABASE_URL": dsn, "PYTHONPATH": str(self.source)}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, *arguments]

    def run(self, dsn: str, *arguments: str) -> str:
        """Run Python with this version of Laneway; return its output."""
        done = subprocess.run(
            self.command(*arguments),
            env=self.environment(dsn),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{self.commit} {arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def migrate(self, dsn: str) -> list[str]:
        """Migrate with this version; return the applied migrations."""
        output = self.run(dsn, "-m", "laneway", "db", "migrate")
        return output.split()

    def statements(self) -> Iterator[tuple[str, str]]:
        root = self.source / "laneway" / "store" / "sql"
        for file in sorted(root.glob("*/*.sql")):
            yield f"{file.parent.name}/{file.stem}", file.read_text("utf-8")


def describe(conn: psycopg.Connection[tuple[object, ...]], text: str) -> Described:
    """Prepare a statement; return its columns and parameter types."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    numbered = re.sub(r"%\((\w+)\)s", number, text).replace("%%", "%")
    prepared = conn.pgconn.prepare(b"", numbered.encode())
    if prepared.status != ExecStatus.COMMAND_OK:
        raise psycopg.ProgrammingError(prepared.error_message.decode())
    described = conn.pgconn.describe_prepared(b"")
    columns = [
        ((described.fname(i) or b"").decode(), described.ftype(i)) for i in range(described.nfields)
    ]
    return columns, [described.param_type(i) for i in range(described.nparams)]
