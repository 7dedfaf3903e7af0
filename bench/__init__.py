"""Side-by-side measurements of Laneway beside PostgreSQL's own limit: `python -m bench.run`."""
