"""Counters, metrics, traces and limits on log lines.

log_throttle.py       limits repeated log lines
safe_logger.py        log lines that cannot fail
counters.py           the counters of this process
metrics.py            every metric: name, labels, meaning
metrics_endpoint.py   serves the metrics of a worker process
tracing.py            OpenTelemetry spans, if the application set it up
"""
