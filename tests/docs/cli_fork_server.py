"""Runs the `laneway` commands of the documents in forks of one process that has imported it all.

The documents call it some hundred times, and each would import for half a second. `python
cli_fork_server.py SOCKET` serves; `write_command` writes the `laneway` that a shell finds, which hands its
arguments, directory, environment and standard files over and exits as the fork does. What stays
(workers, servers) and what has to be killed is started as it really is.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path

LASTING = ("worker", "remote-worker", "demo", "top", "up", "server")

COMMAND = """\
#!{python} -IS
import json, os, socket, sys
if sys.argv[1:2] and sys.argv[1] in {lasting}:
    os.execv({real!r}, [{real!r}, *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as fork_server:
    fork_server.connect({address!r})
    said = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(fork_server, [len(said).to_bytes(4, "big")], [0, 1, 2])
    fork_server.sendall(said)
    answer = fork_server.recv(4)
sys.exit(int(answer) if answer else 1)
"""


def write_command(directory: Path, address: Path) -> None:
    """Writes the `laneway` for a PATH that begins with the directory."""
    directory.mkdir()
    path = directory / "laneway"
    real = str(Path(sys.executable).with_name("laneway"))
    path.write_text(
        COMMAND.format(python=sys.executable, lasting=LASTING, real=real, address=str(address)),
        "utf-8",
    )
    path.chmod(0o755)


def serve(address: str) -> None:
    """Until it is killed."""
    # Imported once, here, for all that are forked.
    import laneway.app.laneway
    import laneway.app.open_database
    import laneway.cli.main
    import laneway.control
    import laneway.store.health  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        print("ready", flush=True)
        while True:
            asking, _ = listening.accept()
            with asking:
                if os.fork() == 0:
                    listening.close()
                    _run(asking)


def _run(asking: socket.socket) -> None:
    head, files, _, _ = socket.recv_fds(asking, 4, 3)
    said = b""
    while len(said) < int.from_bytes(head, "big"):
        said += asking.recv(1 << 16)
    arguments, directory, environment = json.loads(said)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["laneway", *arguments]
    code: object = 1
    try:
        from laneway.cli.main import main

        main()
        code = 0
    except SystemExit as ending:
        code = ending.code or 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        asking.sendall(str(code if isinstance(code, int) else 1).encode())
        os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
