"""A second client: requests /healthz every 10 ms; prints start, duration and blocked time."""

from __future__ import annotations

import socket
import sys
import time

from tests.abuse.resource_usage import Watch

PERIOD_S = 0.01
_ASK = b"GET /healthz HTTP/1.1\r\nHost: probe\r\n\r\n"


def main(host: str, port: int, pid: int) -> None:
    conn: socket.socket | None = None
    while True:
        began, watch = time.monotonic(), Watch(pid)
        try:
            if conn is None:
                conn = socket.create_connection((host, port), timeout=60)
                conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            conn.sendall(_ASK)
            if not conn.recv(65536):
                raise ConnectionError
        except OSError:
            # The server did not accept the connection: the whole time counts as a block.
            if conn is not None:
                conn.close()
            conn = None
        took, _, blocked = watch.read()
        print(f"{began:.6f} {took:.6f} {blocked:.6f}", flush=True)
        time.sleep(PERIOD_S)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
