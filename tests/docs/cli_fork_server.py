"""Run the `laneway` commands of the documents in forks of one process with all imports done.

The documents run some hundred commands, and each would import for half a second. `python
cli_fork_server.py SOCKET` serves. `write_command` writes a `laneway` program that passes its
arguments, directory, environment and standard files on, and exits as the fork does. Long-running
commands (workers, servers) start as real processes.
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
    request = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(fork_server, [len(request).to_bytes(4, "big")], [0, 1, 2])
    fork_server.sendall(request)
    answer = fork_server.recv(4)
sys.exit(int(answer) if answer else 1)
"""


def write_command(directory: Path, address: Path) -> None:
    """Write the `laneway` program for a PATH that begins with the directory."""
    directory.mkdir()
    path = directory / "laneway"
    real = str(Path(sys.executable).with_name("laneway"))
    path.write_text(
        COMMAND.format(python=sys.executable, lasting=LASTING, real=real, address=str(address)),
        "utf-8",
    )
    path.chmod(0o755)


def serve(address: str) -> None:
    """Serve until the process is killed."""
    # Imported once for all forks.
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
            client, _ = listening.accept()
            with client:
                if os.fork() == 0:
                    listening.close()
                    _run(client)


def _run(client: socket.socket) -> None:
    head, files, _, _ = socket.recv_fds(client, 4, 3)
    request = b""
    while len(request) < int.from_bytes(head, "big"):
        request += client.recv(1 << 16)
    arguments, directory, environment = json.loads(request)
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
        client.sendall(str(code if isinstance(code, int) else 1).encode())
        os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
