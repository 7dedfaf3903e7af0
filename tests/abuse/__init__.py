"""Hostile requests against a real server; `make abuse` replays all of them."""
