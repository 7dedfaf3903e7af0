"""A heartbeat process that never sends anything."""

import sys

sys.stdin.buffer.read()
