"""The server's figures: `make bench-api`."""
