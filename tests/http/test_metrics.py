import pytest
from prometheus_client import REGISTRY

from sapa.http.metrics import BUCKETS, LATENCY, observe_latencies

SECONDS = [0.0, 0.001, 0.0011, 0.03, 0.03, 10.0, 10.1, 600.0]
"""Below, on and above bounds."""


def read_samples(route: str) -> dict[str, float]:
    """The values of a route, by name and bucket."""
    metrics = (metric for metric in REGISTRY.collect() if metric.name == "sapa_http_request_seconds")
    samples = [sample for metric in metrics for sample in metric.samples if sample.labels.get("route") == route]
    return {f"{one.name} {one.labels.get('le', '')}": one.value for one in samples if not one.name.endswith("_created")}


def test_a_batch_counts_like_its_calls_one_by_one() -> None:
    one_by_one = LATENCY.labels("GET", "/one-by-one")
    for seconds in SECONDS:
        one_by_one.observe(seconds)
    observe_latencies("GET", "/batch", SECONDS[:3])
    observe_latencies("GET", "/batch", SECONDS[3:])
    samples = read_samples("/batch")
    assert samples == pytest.approx(read_samples("/one-by-one"))
    assert len(samples) == len(BUCKETS) + 1 + 2  # the last bucket is infinite; the sum and the number of calls
