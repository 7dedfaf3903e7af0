"""A heartbeat process that hangs as it starts."""

import sys

if __name__ == "__main__":
    sys.stdin.buffer.read()
