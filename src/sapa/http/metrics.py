"""Metrics: counted per process, summed over processes when /metrics is read."""

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Sequence

from prometheus_client import Counter, Gauge, Histogram

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

REQUESTS = Counter("sapa_http_requests", "API calls by route and status.", ["method", "route", "status"])
LATENCY = Histogram("sapa_http_request_seconds", "Time to answer an API call.", ["method", "route"], buckets=BUCKETS)
UNAVAILABLE = Counter("sapa_database_unavailable", "Calls answered 503 because PostgreSQL was away or busy.")
CALLS_NOT_LOGGED = Counter("sapa_api_calls_not_logged", "API calls that are missing in the companies' log of calls.")
POOL_CONNECTIONS = Gauge(
    "sapa_pool_connections", "Database connections of the API processes.", multiprocess_mode="livesum"
)
POOL_IDLE = Gauge("sapa_pool_idle", "Idle ones of them.", multiprocess_mode="livesum")

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def method_label(method: str) -> str:
    """Callers can invent methods; labels stay a small set."""
    return method if method in METHODS else "other"


# Binding labels costs more than counting, so each pair is bound once. Routes are templates: the set is small.
_latencies: dict[tuple[str, str], Histogram] = {}


def count_requests(method: str, route: str, status: int, number: int) -> None:
    REQUESTS.labels(method_label(method), route, str(status)).inc(number)


def observe_latencies(method: str, route: str, seconds: Sequence[float]) -> None:
    """Adds a batch to each bucket at once. The library's own method takes one call at a time, and for each as long as
    the rest of its line in the access log."""
    method = method_label(method)
    latency = _latencies.get((method, route))
    if latency is None:
        latency = _latencies[method, route] = LATENCY.labels(method, route)
    latency._sum.inc(sum(seconds))
    for bucket, number in Tally(bisect_left(BUCKETS, each) for each in seconds).items():
        latency._buckets[bucket].inc(number)
