"""Run the processes of the documents in forks of one process with all imports done.

The documents run some hundred commands and thirty Python processes, and each would import for half
a second. `python fork_server.py SOCKET` serves all documents of a test process. Each request names
what to run, its directory and environment, and passes standard files on:

    document  a server of one document: a separate process group, with the commands below it
    python    the Python blocks of one document (python_process.py)
    command   `laneway` with arguments, sent by the program that `write_command` writes

A command gets the signals of that program, and is killed with it.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
from pathlib import Path

PACKAGES = (
    "api", "app", "cli", "client", "control", "domain", "embedded", "engine", "http", "operations",
    "store",
)  # fmt: skip

COMMAND = """\
#!{python} -IS
import json, os, signal, socket, sys
with socket.socket(socket.AF_UNIX) as fork_server:
    fork_server.connect({address!r})
    request = json.dumps(["command", sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(fork_server, [len(request).to_bytes(4, "big")], [0, 1, 2])
    fork_server.sendall(request)
    answers = fork_server.makefile()
    pid = int(answers.readline())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: os.kill(pid, number))
    answer = answers.readline()
sys.exit(int(answer) if answer else 1)
"""


def write_command(directory: Path, address: Path) -> None:
    """Write the `laneway` program for a PATH that begins with the directory."""
    directory.mkdir()
    path = directory / "laneway"
    path.write_text(COMMAND.format(python=sys.executable, address=str(address)), "utf-8")
    path.chmod(0o755)


def fork(
    address: Path,
    kind: str,
    arguments: list[str],
    directory: Path,
    environment: dict[str, str],
    files: tuple[int, int, int],
) -> int:
    """Start a process of that kind; return its id, which is also that of its group."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(str(address))
        request = json.dumps([kind, arguments, str(directory), environment]).encode()
        socket.send_fds(server, [len(request).to_bytes(4, "big")], list(files))
        server.sendall(request)
        return int(server.recv(16))


def serve(address: str) -> None:
    """Serve until the process is killed."""
    # Nothing else waits for a fork that ended, and it must not stay.
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
                    try:
                        _run(client)
                    finally:
                        os._exit(1)


def _run(client: socket.socket) -> None:
    head, files, _, _ = socket.recv_fds(client, 4, 3)
    request = b""
    while len(request) < int.from_bytes(head, "big"):
        request += client.recv(1 << 16)
    kind, arguments, directory, environment = json.loads(request)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    if kind == "command":
        _run_command(client, arguments)
        return
    os.setsid()
    client.sendall(str(os.getpid()).encode())
    client.close()
    if kind == "document":
        serve(arguments[0])
    from tests.docs import python_process

    python_process.serve()
    os._exit(0)  # without the threads and handlers of a normal exit: the process closed its loop


def _run_command(client: socket.socket, arguments: list[str]) -> None:
    ended, alive = os.pipe()
    if child := os.fork():  # which may become another program: `db run`
        os.close(alive)
        client.sendall(f"{child}\n".encode())
        if client.fileno() in select.select([client.fileno(), ended], [], [])[0]:
            os.kill(child, signal.SIGKILL)  # the caller was killed
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        client.sendall(f"{status if status >= 0 else 1}\n".encode())
        os._exit(0)
    client.close()
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
        os._exit(code if isinstance(code, int) else 1)


def _import_all() -> None:
    """Import once for all forks: commands import most modules only when they need them."""
    import laneway
    from tests.docs import python_process  # noqa: F401

    for module in pkgutil.walk_packages(laneway.__path__, "laneway."):
        if module.name.split(".")[1] in PACKAGES and not module.name.endswith("__main__"):
            importlib.import_module(module.name)


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    _import_all()
    sys.path[0] = str(Path(sys.executable).parent)  # as for the installed program
    serve(sys.argv[1])
