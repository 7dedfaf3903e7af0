"""The protocol is what the code was made from, and keeps to the rules of its kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from scripts.write_rpc import INTO, PROTO, generate


def test_generated_code_is_up_to_date() -> None:
    made = generate()
    assert made, "nothing was generated"
    for name, text in made.items():
        assert (INTO / name).read_text() == text, f"{name} is stale: make rpc"


def test_protocol_is_linted() -> None:
    buf = Path(sys.executable).parent / "buf"
    done = subprocess.run([buf, "lint"], cwd=PROTO, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
