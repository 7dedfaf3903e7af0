"""Measurements of Laneway next to what PostgreSQL alone can do: `python -m bench.run`."""
