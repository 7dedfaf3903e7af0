"""The pages of integrations show the examples that `make integrations` runs."""

from __future__ import annotations

import pytest

from scripts.integrations import INTEGRATIONS, LOCKS, ROOT
from tests.docs.test_code_blocks import read_blocks

EXAMPLES = ROOT / "examples" / "integrations"


@pytest.mark.parametrize("name", INTEGRATIONS)
def test_page_shows_parts_of_the_example(name: str) -> None:
    blocks = read_blocks(ROOT / "docs" / "howto" / f"{name}.md")
    titled = [block for block in blocks if block.title and block.skipped]
    for block in titled:
        assert block.title is not None
        assert block.code in (EXAMPLES / name / block.title).read_text("utf-8"), block.place
    # A page without such blocks is run itself.
    assert titled or any(block.language == "python" and not block.skipped for block in blocks)


@pytest.mark.parametrize("name", INTEGRATIONS)
def test_integration_has_an_example_a_test_and_locks(name: str) -> None:
    assert any((EXAMPLES / name).iterdir())
    assert (ROOT / "tests" / "integrations" / "examples" / f"test_{name}.py").is_file()
    for environment in INTEGRATIONS[name]:
        assert (LOCKS / f"{environment}.in").is_file()
        assert (LOCKS / f"{environment}.txt").is_file()


def test_every_example_is_run() -> None:
    assert {each.name for each in EXAMPLES.iterdir()} == set(INTEGRATIONS)
