"""Every kind of worker conforms to scenarios.toml."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance.environment import HANDLERS
from tests.conformance.processes import TYPESCRIPT
from tests.conformance.run import run_all, scenarios_of
from tests.conformance.scenario import FILE, KINDS, load


def is_built() -> bool:
    sdk = TYPESCRIPT.parents[2]
    built = sdk / "dist" / ".built"
    sources = [path for room in ("src", "test") for path in (sdk / room).rglob("*.ts")]
    newest = max(path.stat().st_mtime for path in sources)
    return built.exists() and built.stat().st_mtime >= newest


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
async def test_worker_conforms(
    kind: str, dsn: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    if kind == "typescript" and not is_built():
        pytest.fail("the TypeScript SDK is not built, or has changed since: make sdk-typescript")
    chosen = scenarios_of(kind)
    found = await run_all(kind, dsn, tmp_path, chosen)
    for scenario in chosen:
        with subtests.test(scenario.name):
            assert found[scenario.name] == [], scenario.law


def test_skipped_scenarios_have_a_reason() -> None:
    silent = [one.name for one in load() for reason in one.skip.values() if len(reason) < 5]
    assert silent == []


def test_every_handler_is_described_and_used() -> None:
    readme = FILE.with_name("README.md").read_text("utf-8")
    described = re.findall(r"^\| `(\w+)` \|", readme.partition("## The handlers")[2], re.MULTILINE)
    used = {job.handler for one in load() for job in one.jobs}
    assert sorted(described) == sorted(HANDLERS) == sorted(used)
