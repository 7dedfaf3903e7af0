"""Figures of remote workers next to workers with a database: `make bench-rpc`."""
