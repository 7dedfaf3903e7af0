"""What is installed: locks for every extra, and a bill of materials that names all of it."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

from scripts.extras import extras
from scripts.sbom import bill, locks, packages

ROOT = Path(__file__).resolve().parents[2]


def test_every_extra_has_a_lock_with_the_tested_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {*extras(), "dev"} == set(project["optional-dependencies"])
    tested = packages(ROOT / "requirements" / "dev.txt")
    for name in extras():
        lock = packages(ROOT / "requirements" / f"{name}.txt")
        for wanted in project["optional-dependencies"][name]:
            package = re.match(r"[a-z0-9-]+", wanted)
            assert package is not None
            assert package[0] in lock
        assert {one: each["version"] for one, each in lock.items()}.items() <= {
            one: each["version"] for one, each in tested.items()
        }.items()


def test_bill_of_materials_names_every_locked_package_with_its_hashes() -> None:
    made = bill()
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    components = {(one["name"], one["version"]): one for one in made["components"]}
    assert len(components) == len(made["components"])
    for lock in locks():
        for name, package in packages(lock).items():
            said = {one["value"] for one in components[name, package["version"]]["properties"]}
            assert package["hashes"]
            assert {*package["hashes"], lock.stem} <= said


def test_bill_of_materials_is_whole_and_always_the_same() -> None:
    made = bill()
    known = {one["bom-ref"] for one in made["components"]}
    own = made["metadata"]["component"]["bom-ref"]
    used = {other for one in made["dependencies"] for other in one["dependsOn"]}
    assert {one["ref"] for one in made["dependencies"]} == known | {own}
    assert used == known
    assert bill() == made


def test_audit_without_its_database_fails_and_says_so(tmp_path: Path) -> None:
    """The auditor stands in for one that cannot connect."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "runtime.txt").write_text("")
    script = tmp_path / "scripts" / "audit.sh"
    script.write_text((ROOT / "scripts" / "audit.sh").read_text("utf-8"))
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    for answer, said in (
        ("ConnectionError: no route", "NOT AUDITED"),
        ("ERROR: Dependency not found and could not be audited: a (1)", "NOT AUDITED"),
        ("jinja2 CVE-1", "CVE-1"),
    ):
        fails = f"case $2 in pip_audit) echo '{answer}' >&2; exit 1;; esac"
        python.write_text(f"#!/bin/sh\n{fails}\n")
        python.chmod(0o755)
        done = subprocess.run(["sh", script], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert said in done.stderr
    python.write_text("#!/bin/sh\n")
    done = subprocess.run(["sh", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
