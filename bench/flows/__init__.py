"""The benchmark of flows, sleeps and events: `make bench-flows`."""
