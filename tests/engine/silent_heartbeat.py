"""A heartbeat process that never says anything."""

import sys

sys.stdin.buffer.read()
