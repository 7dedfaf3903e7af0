"""What remote workers reach beside those with a database: `make bench-rpc`."""
