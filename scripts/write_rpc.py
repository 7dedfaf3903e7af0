"""Write src/laneway/rpc/_generated from proto/; with --check, only check that it is current."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
INTO = ROOT / "src" / "laneway" / "rpc" / "_generated"
# The generated import would look for the module outside the package.
IMPORT = (
    "from laneway.v1 import dispatch_pb2 as",
    "from laneway.rpc._generated import dispatch_pb2 as",
)


def generate() -> dict[str, str]:
    """Generate the code; return file names and texts."""
    with tempfile.TemporaryDirectory() as made:
        subprocess.run(
            [
                *(sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}"),
                *(f"--{kind}_out={made}" for kind in ("python", "pyi", "grpc_python")),
                "laneway/v1/dispatch.proto",
            ],
            check=True,
        )
        files = sorted(Path(made, "laneway", "v1").iterdir())
        return {file.name: file.read_text().replace(*IMPORT) for file in files}


def main() -> int:
    made = generate()
    stale = [
        name
        for name, text in made.items()
        if not (INTO / name).exists() or (INTO / name).read_text() != text
    ]
    if "--check" in sys.argv[1:]:
        for name in stale:
            print(f"{INTO.relative_to(ROOT) / name} does not match proto/: run `make rpc`")
        return bool(stale)
    for name in stale:
        (INTO / name).write_text(made[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
