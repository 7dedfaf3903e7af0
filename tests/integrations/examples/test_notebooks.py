"""The example of notebooks: `job.watch()` shows a bar in a real kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.examples.programs import Environment

pytestmark = pytest.mark.integration

# Runs all cells as a front end does, and prints the outputs of each.
EXECUTE = """
import json
import nbformat
from nbclient import NotebookClient

book = nbformat.read("watch.ipynb", as_version=4)
NotebookClient(book, timeout=120, kernel_name="python3").execute()
print(json.dumps([cell.outputs for cell in book.cells if cell.cell_type == "code"]))
"""


def test_watch_shows_a_bar_in_a_notebook(dsn: str, tmp_path: Path) -> None:
    notebooks = Environment(
        "notebooks", "notebooks", tmp_path, LANEWAY_DATABASE_URL=dsn,
        IPYTHONDIR=str(tmp_path), JUPYTER_PLATFORM_DIRS="1",
    )  # fmt: skip
    _, awaited, blocking, cancelled, _ = json.loads(notebooks.run("-c", EXECUTE))
    for outputs, pages in ((awaited, "20"), (blocking, "10")):
        assert "<progress" in html(outputs)
        assert f'value="{pages}" max="{pages}"' in html(outputs)
        assert "count completed 100 %" in html(outputs)
        assert result(outputs) == pages
    assert "count cancelled" in html(cancelled)
    assert "not needed" in html(cancelled)
    assert any("was cancelled" in each.get("text", "") for each in cancelled)


def html(outputs: list[dict[str, Any]]) -> str:
    """The bar as it is shown last; it is updated, not shown again."""
    [bar] = [each["data"]["text/html"] for each in outputs if each["output_type"] == "display_data"]
    return str(bar)


def result(outputs: list[dict[str, Any]]) -> str:
    [found] = [each["data"] for each in outputs if each["output_type"] == "execute_result"]
    return str(found["text/plain"])
