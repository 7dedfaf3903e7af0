"""Counters, metrics and traces.

counters.py           what this process has counted
metrics.py            every metric: name, labels, meaning
metrics_endpoint.py   serves the metrics of a worker process
tracing.py            OpenTelemetry, where the application set it up
"""
