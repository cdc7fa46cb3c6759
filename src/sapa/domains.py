"""The one list of domains: what the app serves, the worker does and the documents describe."""

from sapa.access import actions as access
from sapa.customers import api as customers
from sapa.db import counters
from sapa.http.endpoints import Routes
from sapa.imports import actions as import_actions
from sapa.imports import api as imports
from sapa.imports import uploads
from sapa.loyalty import api as loyalty
from sapa.loyalty import jobs as loyalty_jobs
from sapa.loyalty.rewards import api as rewards
from sapa.orders import api as orders
from sapa.products import api as products
from sapa.timeline import api as timeline
from sapa.webhooks import catch_up, dispatcher
from sapa.work import retention
from sapa.work.worker import Job, Service

ROUTES: list[Routes] = [
    customers.routes,
    products.routes,
    orders.routes,
    timeline.routes,
    loyalty.routes,
    rewards.routes,
    imports.routes,
]

JOBS: list[Job] = [
    Job("fold counters", 1, counters.fold),
    Job("catch up with webhooks", 1, catch_up.catch_up),
    Job("expire keys", 10, access.expire_keys),
    Job("expire points", 5, loyalty_jobs.expire_overdue),
    Job("check wallets", 60, loyalty_jobs.check_wallets),
    Job("forget idempotency records", 60, retention.forget_idempotency_records),
    Job("forget imports", 3600, import_actions.forget_old),
    Job("keep partitions", 3600, retention.keep_partitions),
]

SERVICES: list[Service] = [
    Service("webhooks", dispatcher.deliver),
    Service("uploads", uploads.import_uploads),
]
