"""Check the files in deploy/: `make deploy-check`, in an environment with the checkers.

Hadolint reads the Dockerfile, Compose's schema the compose file, Kubernetes' schemas what the chart
renders with its own values and with all options, systemd and promtool their files. A chart that
should be refused is rendered too.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm/laneway"
RENDER = ROOT / ".cache/render_chart"
# The oldest that Chart.yaml accepts and the checker knows, and a new one.
KUBERNETES = ("1.27", "1.34")
# Kubernetes has no schemas for other people's kinds.
FOREIGN = {"ScaledObject", "TriggerAuthentication"}
IMAGE = {"image": {"repository": "images.example/shop", "tag": "1.2"}}
ALL_OPTIONS: dict[str, Any] = {
    **IMAGE,
    "imagePullSecrets": [{"name": "images"}],
    "settings": {
        "LANEWAY_LOG_LEVEL": "DEBUG",
        "LANEWAY_GRPC": True,
        "LANEWAY_MAX_PAYLOAD_BYTES": 1048576,
    },
    "migrate": {
        "enabled": True,
        "admin": "ada",
        "grants": {"app_server": ["server"], "app_worker": ["worker", "client"]},
        "resources": {"limits": {"memory": "256Mi"}},
    },
    "server": {
        "replicas": 3,
        "args": ["--port", "8420"],
        "trustedProxies": "10.0.0.0/8",
        "ingress": {
            "enabled": True,
            "className": "nginx",
            "host": "jobs.example",
            "annotations": {"example/proxy-read-timeout": "3600"},
            "tlsSecret": "jobs-tls",
        },
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "jobs", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
    },
    "workers": {
        "default": {
            "application": "app:lw",
            "args": ["--processes", "2"],
            "env": {"OPENAI_TIMEOUT": 30},
            "shutdownGrace": 300,
            "keda": {"enabled": True, "lanes": {"default": 100, "interactive": 10}},
        },
        "isolated": {"application": "shop.jobs:make()", "replicas": 0},
    },
    "serviceAccount": {"annotations": {"example/role": "jobs"}},
}
REFUSED: dict[str, dict[str, Any]] = {
    "no image": {},
    "KEDA without lanes": {
        **IMAGE,
        "workers": {"default": {"application": "app:lw", "keda": {"enabled": True, "lanes": None}}},
    },
    "an unknown value": {**IMAGE, "worker": {"replicas": 2}},
    "a login that owns the schema": {**IMAGE, "migrate": {"grants": {"app": ["owner"]}}},
    "a login with a space": {**IMAGE, "migrate": {"grants": {"app server": ["server"]}}},
    "a worker without an application": {**IMAGE, "workers": {"other": {"replicas": 2}}},
}


class CheckFailed(Exception):
    pass


def run(*command: str | Path) -> str:
    done = subprocess.run(
        [str(each) for each in command], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise CheckFailed(f"{command[0]}: {done.stdout}{done.stderr}".strip())
    return done.stdout


def render(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The chart's objects with these values, which must fit its schema."""
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    own = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    try:
        jsonschema.Draft7Validator.check_schema(schema)
        jsonschema.validate(merged(own, values), schema, cls=jsonschema.Draft7Validator)
    except jsonschema.ValidationError as error:
        raise CheckFailed(f"values.schema.json: {error.json_path}: {error.message}") from None
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(values, file)
        file.flush()
        text = run(RENDER, CHART, file.name)
    return (each for each in yaml.safe_load_all(text) if each)


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(below)
    for name, value in above.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict) and isinstance(result.get(name), dict):
            result[name] = merged(result[name], value)
        else:
            result[name] = value
    return result


def check_dockerfile() -> None:
    run(Path(sys.executable).parent / "hadolint", DEPLOY / "docker/Dockerfile")


def check_compose() -> None:
    given = yaml.safe_load((DEPLOY / "docker/compose.yaml").read_text("utf-8"))
    schema = json.loads((resources.files("compose") / "config/compose_spec.json").read_text())
    jsonschema.validate(given, schema)
    services = given["services"]
    for name, service in services.items():
        for other in service.get("depends_on", {}):
            if other not in services:
                raise CheckFailed(f"compose.yaml: {name} depends on an unknown {other}")


def documented() -> list[dict[str, Any]]:
    """The values that docs/howto/deploy.md shows."""
    page = (ROOT / "docs/howto/deploy.md").read_text("utf-8")
    blocks = re.findall(
        r'^```yaml title="production.yaml"\n(.*?)^```', page, re.DOTALL | re.MULTILINE
    )
    return [{**IMAGE, **yaml.safe_load(block)} for block in blocks]


def _check_values(given: dict[str, Any]) -> None:
    """Numbers arrive as they were written."""
    name = given["metadata"]["name"]
    if name.endswith("isolated") and given["kind"] == "Deployment" and given["spec"]["replicas"]:
        raise CheckFailed("replicas: 0 does not stay 0")
    if "e+" in str(given):
        raise CheckFailed(f"{name} has a number in exponents")


def check_hook(job: dict[str, Any]) -> None:
    """The migration comes first, then the rights of each login, then the administrator."""
    (script,) = job["spec"]["template"]["spec"]["containers"][0]["args"]
    found = [line.strip() for line in script.splitlines() if "laneway" in line]
    wanted = [
        "laneway db migrate",
        "laneway db grants --apply --keep --to app_server --role server",
        "laneway db grants --apply --keep --to app_worker --role worker --role client",
    ]
    if found[:3] != wanted:
        raise CheckFailed(f"the migration runs {found}")


def check_chart() -> None:
    for values in (IMAGE, *documented(), ALL_OPTIONS):
        kinds: set[str] = set()
        names: set[tuple[str, str]] = set()
        for each in render(values):
            kinds.add(each["kind"])
            key = (each["kind"], each["metadata"]["name"])
            if key in names:
                raise CheckFailed(f"the chart renders {key} twice")
            names.add(key)
            for version in KUBERNETES:
                if each["kind"] not in FOREIGN:
                    kubernetes_validate.validate(each, version, strict=True)
            _check_values(each)
            if values is ALL_OPTIONS and each["kind"] == "Job":
                check_hook(each)
        wanted = {"Deployment", "Service", "Job", "PodDisruptionBudget", "ServiceAccount"}
        if "keda" in values.get("workers", {}).get("default", {}):
            wanted |= FOREIGN
        if values is ALL_OPTIONS:
            wanted.add("Ingress")
        if kinds != wanted:
            raise CheckFailed(f"the chart renders {kinds}, not {wanted}")
    for what, values in REFUSED.items():
        try:
            list(render(values))
        except CheckFailed:
            continue
        raise CheckFailed(f"the chart renders with {what}")


def check_units() -> None:
    for path in sorted((DEPLOY / "systemd").glob("*.service")):
        with tempfile.TemporaryDirectory() as folder:
            # systemd-analyze wants the program to exist.
            text = re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", path.read_text("utf-8"))
            unit = Path(folder) / path.name
            unit.write_text(re.sub(r"User=\S+", "User=root", text), "utf-8")
            run("systemd-analyze", "verify", unit)


def check_alerts() -> None:
    run("promtool", "check", "rules", DEPLOY / "prometheus/alerts.yml")
    run("promtool", "test", "rules", ROOT / "scripts/alerts_test.yml")


CHECKS: dict[str, Callable[[], None]] = {
    "docker/Dockerfile": check_dockerfile,
    "docker/compose.yaml": check_compose,
    "helm/laneway": check_chart,
    "systemd": check_units,
    "prometheus/alerts.yml": check_alerts,
}


def main() -> int:
    failed = 0
    checked = 0
    for name, check in CHECKS.items():
        try:
            check()
        except (CheckFailed, jsonschema.ValidationError, kubernetes_validate.ValidationError) as e:
            failed += 1
            print(f"FAILED {name}: {e}")
            continue
        path = DEPLOY / name
        files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
        checked += len(files)
        print(f"ok {name}")
    print(f"[deploy_files_checked] {checked}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
