"""Metrics of the worker."""

from prometheus_client import Counter, Histogram

RUNS = Counter("sapa_job_runs", "Runs of the worker's jobs by outcome.", ["job", "outcome"])
SECONDS = Histogram("sapa_job_seconds", "Time that a run of a job took.", ["job"])
ATTEMPTS = Counter("sapa_webhook_attempts", "Webhook attempts by outcome and class of failure.", ["outcome", "error"])
PROBES = Counter("sapa_webhook_probes", "Probes of suspended webhook endpoints by outcome.", ["outcome"])
