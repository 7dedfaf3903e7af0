"""The workloads that every system runs: one module each."""
