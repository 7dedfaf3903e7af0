"""Write the software bill of materials (CycloneDX 1.6) of the hashed locks.

    python -m scripts.sbom [FILE]        default: dist/laneway.cdx.json

The same locks always give the same document: no download, no clock.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from scripts.extras import extras

ROOT = Path(__file__).resolve().parents[1]
_PIN = re.compile(r"([a-z0-9][a-z0-9._-]*)(?:\[[^\]]*\])?==([^ ;\\]+)(?: ; ([^\\]+?))? \\")
_HASH = re.compile(r" +--hash=sha256:([0-9a-f]{64})")


def locks() -> list[Path]:
    """The locks that users install: the core, everything, and every extra."""
    return [ROOT / "requirements" / f"{name}.txt" for name in ("core", "runtime", *extras())]


def packages(lock: Path) -> dict[str, dict[str, Any]]:
    """The packages of a lock by name: version, marker, hashes and dependents."""
    found: dict[str, dict[str, Any]] = {}
    current: dict[str, Any] = {}
    for line in lock.read_text("utf-8").splitlines():
        if pin := _PIN.match(line):
            current = {"version": pin[2], "marker": pin[3], "hashes": [], "via": []}
            found[pin[1]] = current
        elif digest := _HASH.match(line):
            current["hashes"].append(digest[1])
        elif line.startswith("    #") and current:
            name = line.lstrip(" #").removeprefix("via").strip()
            if name.startswith("-r "):
                name = "laneway (build)"
            if name and not name.startswith("-"):
                current["via"].append(name)
    return found


def bill() -> dict[str, Any]:
    """The document as JSON values."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    version = project["version"]
    own = f"pkg:pypi/laneway@{version}"
    known: dict[str, dict[str, Any]] = {}
    needed: dict[str, set[str]] = {own: set()}
    for lock in locks():
        for name, package in packages(lock).items():
            entry = known.setdefault(name, {**package, "via": set(), "locks": []})
            entry["via"].update(package["via"])
            entry["locks"].append(lock.stem)
    reference = {name: f"pkg:pypi/{name}@{one['version']}" for name, one in known.items()}
    for name, one in known.items():
        needed.setdefault(reference[name], set())
        for user in one["via"]:
            source = own if user.startswith("laneway ") else reference.get(user)
            if source is not None:
                needed.setdefault(source, set()).add(reference[name])
    components = [_component(name, one, reference[name]) for name, one in sorted(known.items())]
    text = json.dumps(components, sort_keys=True)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, own + text)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": "laneway",
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": components,
        "dependencies": [
            {"ref": name, "dependsOn": sorted(others)} for name, others in sorted(needed.items())
        ],
    }


def _component(name: str, one: dict[str, Any], reference: str) -> dict[str, Any]:
    # Each package has several files; any of them may be installed.
    properties = [("laneway:lock", lock) for lock in one["locks"]]
    properties += [("laneway:sha256", digest) for digest in one["hashes"]]
    if one["marker"]:
        properties.append(("laneway:marker", one["marker"]))
    return {
        "type": "library",
        "bom-ref": reference,
        "name": name,
        "version": one["version"],
        "purl": reference,
        "scope": "required" if "core" in one["locks"] else "optional",
        "properties": [{"name": key, "value": value} for key, value in properties],
    }


def main() -> None:
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "laneway.cdx.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    made = bill()
    file.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    print(f"{file}: {len(made['components'])} packages")


if __name__ == "__main__":
    main()
