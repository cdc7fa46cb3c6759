"""The one list of domains: what the app serves, the worker does and the documents describe."""

from sapa.access import actions as access
from sapa.customers import api as customers
from sapa.db import counters
from sapa.http.endpoints import Routes
from sapa.work import retention
from sapa.work.worker import Job, Service

ROUTES: list[Routes] = [
    customers.routes,
]

JOBS: list[Job] = [
    Job("fold counters", 1, counters.fold),
    Job("expire keys", 10, access.expire_keys),
    Job("forget idempotency records", 60, retention.forget_idempotency_records),
    Job("keep partitions", 3600, retention.keep_partitions),
]

SERVICES: list[Service] = []
