"""The supply chain: locks for every extra, and a complete bill of materials."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

from laneway.extras import PACKAGES
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
            assert package[0] in lock or package[0] == "laneway"  # other extras
        assert {one: each["version"] for one, each in lock.items()}.items() <= {
            one: each["version"] for one, each in tested.items()
        }.items()


def test_lock_of_all_extras_is_what_the_demo_runs() -> None:
    everything = packages(ROOT / "requirements" / "all.txt")
    assert everything.items() <= packages(ROOT / "requirements" / "runtime.txt").items()
    integrations = {"asyncpg", "sqlalchemy", "django"}  # the caller's own drivers
    for name in ["core", *(one for one in extras() if one not in integrations)]:
        assert packages(ROOT / "requirements" / f"{name}.txt").keys() <= everything.keys()


def test_every_extra_that_an_error_names_exists() -> None:
    assert set(PACKAGES) <= set(extras())


def test_bill_of_materials_names_every_locked_package_with_its_hashes() -> None:
    made = bill()
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    components = {(one["name"], one["version"]): one for one in made["components"]}
    assert len(components) == len(made["components"])
    for lock in locks():
        for name, package in packages(lock).items():
            properties = {
                one["value"] for one in components[name, package["version"]]["properties"]
            }
            assert package["hashes"]
            assert {*package["hashes"], lock.stem} <= properties


def test_bill_of_materials_is_whole_and_always_the_same() -> None:
    made = bill()
    known = {one["bom-ref"] for one in made["components"]}
    own = made["metadata"]["component"]["bom-ref"]
    used = {other for one in made["dependencies"] for other in one["dependsOn"]}
    assert {one["ref"] for one in made["dependencies"]} == known | {own}
    assert used == known
    assert bill() == made


def test_audit_without_database_fails_with_message(tmp_path: Path) -> None:
    """A fake auditor that cannot connect."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "runtime.txt").write_text("")
    script = tmp_path / "scripts" / "audit.sh"
    script.write_text((ROOT / "scripts" / "audit.sh").read_text("utf-8"))
    (tmp_path / "requirements" / "other.txt").write_text("")
    checker, auditor = (tmp_path / name / "bin" / "python" for name in (".venv", ".venv-audit"))
    for python in (checker, auditor):
        python.parent.mkdir(parents=True)
        python.write_text("#!/bin/sh\n")
        python.chmod(0o755)
    unknown = "Dependency not found and could not be audited: a (1)"
    for answer, code, words in (
        ("ConnectionError: no route", 1, ["ConnectionError", "NOT AUDITED"]),
        (unknown, 0, ["could not be audited", "NOT AUDITED"]),
        (f"jinja2 CVE-1\n{unknown}", 1, ["jinja2 CVE-1", "could not be audited", "NOT AUDITED"]),
        ("jinja2 CVE-1", 1, ["jinja2 CVE-1"]),
    ):
        answers = f"case $2 in pip_audit) printf '{answer}\\n'; exit {code};; esac"
        auditor.write_text(f"#!/bin/sh\n{answers}\n")
        done = subprocess.run(["sh", script], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        # Every lock is audited, whatever the result of the previous one.
        assert all(done.stderr.count(word) == 2 for word in words), done.stderr
    auditor.write_text("#!/bin/sh\n")
    done = subprocess.run(["sh", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_auditor_is_installed_in_separate_environment() -> None:
    script = (ROOT / "scripts" / "audit.sh").read_text("utf-8")
    assert not re.search(r'"\$python" -m pip\b', script)
