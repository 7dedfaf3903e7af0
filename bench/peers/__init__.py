"""Laneway beside other job systems, on one machine and one PostgreSQL."""
