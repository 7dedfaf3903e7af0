"""The benchmark of flows: `make bench-flows`."""
