"""The list of domains: what the app serves, the worker runs and the documents describe."""

from collections.abc import Callable
from functools import partial

from starlette.routing import Route

from sapa.access import actions as access_actions
from sapa.access import api as company_settings
from sapa.access.calls import api as api_calls
from sapa.access.keys import api as api_keys
from sapa.analytics import api as analytics
from sapa.backups import jobs as backup_jobs
from sapa.context import AppContext
from sapa.customers import api as customers
from sapa.db import counters
from sapa.db.pool import Database
from sapa.db.wakeups import DueQueue
from sapa.http.endpoints import Routes
from sapa.http.hooks import Hook, answer_hook, find_hook_account
from sapa.imports import actions as import_actions
from sapa.imports import api as imports
from sapa.imports import uploads
from sapa.imports.mappings import api as import_mappings
from sapa.loyalty import api as loyalty
from sapa.loyalty.expiry import jobs as expiry_jobs
from sapa.loyalty.reconciliation import jobs as reconciliation_jobs
from sapa.loyalty.rewards import api as rewards
from sapa.messaging.channel_events import actions as channel_event_actions
from sapa.messaging.channel_events import api as channel_events
from sapa.messaging.channel_status import api as channel_status
from sapa.messaging.channel_status import jobs as channel_status_jobs
from sapa.messaging.confirmations import jobs as confirmation_jobs
from sapa.messaging.connections import actions as channel_connection_actions
from sapa.messaging.connections import api as channel_connections
from sapa.messaging.connections import jobs as channel_connection_jobs
from sapa.messaging.consents import api as consents
from sapa.messaging.consents import pages as consent_pages
from sapa.messaging.costs import api as costs
from sapa.messaging.files import jobs as file_jobs
from sapa.messaging.history import actions as history_actions
from sapa.messaging.history import api as history
from sapa.messaging.inbound import hooks as inbound_hooks
from sapa.messaging.inbound import jobs as inbound_jobs
from sapa.messaging.media import api as media
from sapa.messaging.media import jobs as media_jobs
from sapa.messaging.media import pages as media_pages
from sapa.messaging.messages import api as messages
from sapa.messaging.messages import jobs as message_jobs
from sapa.messaging.sending import api as sending
from sapa.messaging.sending import deferrals
from sapa.messaging.sending import jobs as sending_jobs
from sapa.messaging.templates import api as templates
from sapa.messaging.templates import sync as template_sync
from sapa.messaging.widget import jobs as widget_jobs
from sapa.messaging.widget import pages as widget_pages
from sapa.notifications import api as notifications
from sapa.notifications import jobs as notification_jobs
from sapa.orders import api as orders
from sapa.orders import customer_copies
from sapa.orders import jobs as order_jobs
from sapa.orders.drafts import api as draft_orders
from sapa.orders.history import api as order_history
from sapa.people import actions as people_actions
from sapa.pictures import api as pictures
from sapa.pictures import pages as picture_pages
from sapa.products import api as products
from sapa.sandbox import api as sandbox
from sapa.sandbox import callbacks as sandbox_callbacks
from sapa.sandbox import jobs as sandbox_jobs
from sapa.sandbox.address import mail_server as sandbox_mail
from sapa.sandbox.address import pages as sandbox_pages
from sapa.sandbox.carriers import api as sandbox_carriers
from sapa.sandbox.carriers import simulators as carrier_simulators
from sapa.sandbox.channels import simulators as channel_simulators
from sapa.sandbox.subscriptions import jobs as sandbox_subscriptions
from sapa.settings import Settings
from sapa.shipping import api as shipping
from sapa.shipping import jobs as shipping_jobs
from sapa.shipping.areas import api as areas
from sapa.shipping.areas import importing as area_imports
from sapa.shipping.bookings import api as bookings
from sapa.shipping.carriers import call_log
from sapa.shipping.connections import actions as carrier_connection_actions
from sapa.shipping.connections import api as carrier_connections
from sapa.shipping.labels import actions as label_actions
from sapa.shipping.labels import api as labels
from sapa.shipping.labels import jobs as label_jobs
from sapa.shipping.quotes import actions as quote_actions
from sapa.shipping.quotes import api as quotes
from sapa.shipping.returns import api as returns
from sapa.shipping.scorecards import api as scorecards
from sapa.shipping.settlements import api as settlements
from sapa.shipping.shipments import api as shipments
from sapa.shipping.stores import api as stores
from sapa.shipping.tracking import api as tracking
from sapa.shipping.tracking import hooks as tracking_hooks
from sapa.shipping.tracking_page import api as tracking_page
from sapa.shipping.tracking_page import pages as tracking_pages
from sapa.startup import build_context
from sapa.support import api as support
from sapa.support import jobs as support_jobs
from sapa.support.agents import api as agents
from sapa.support.away_mail import jobs as away_mail_jobs
from sapa.support.business_hours import api as business_hours
from sapa.support.drafts import api as drafts
from sapa.support.labels import api as ticket_labels
from sapa.support.macros import api as macros
from sapa.support.mentions import api as mentions
from sapa.support.notification_settings import api as notification_settings
from sapa.support.presence import api as presence
from sapa.support.ratings import api as ratings
from sapa.support.ratings import jobs as rating_jobs
from sapa.support.ratings import pages as rating_pages
from sapa.support.saved_replies import api as saved_replies
from sapa.support.scheduled_replies import api as scheduled_replies
from sapa.support.scheduled_replies import jobs as scheduled_reply_jobs
from sapa.support.search import api as ticket_search
from sapa.support.sla import api as sla_policies
from sapa.support.teams import api as teams
from sapa.support.views import api as views
from sapa.timeline import api as timeline
from sapa.timeline import jobs as timeline_jobs
from sapa.values.sealing import Vault
from sapa.webhooks.deliveries import api as webhook_deliveries
from sapa.webhooks.dispatch import dispatcher
from sapa.webhooks.dispatch import jobs as dispatch_jobs
from sapa.webhooks.dispatch import lanes as webhook_lanes
from sapa.webhooks.endpoints import actions as endpoint_actions
from sapa.webhooks.endpoints import api as webhook_endpoints
from sapa.webhooks.notices import jobs as notice_jobs
from sapa.webhooks.probes import jobs as probe_jobs
from sapa.webhooks.replay import jobs as replay_jobs
from sapa.work import retention, rotation
from sapa.work.leases import FreeWork
from sapa.work.rotation import SealedTable
from sapa.work.worker import Job, Service

ROUTES: list[Routes] = [
    company_settings.routes,
    customers.routes,
    consents.routes,
    consents.settings_routes,
    products.routes,
    pictures.routes,
    orders.routes,
    order_history.routes,
    draft_orders.routes,
    timeline.routes,
    loyalty.routes,
    rewards.routes,
    imports.routes,
    import_mappings.routes,
    carrier_connections.routes,
    areas.routes,
    quotes.routes,
    shipments.routes,
    shipping.routes,
    bookings.routes,
    tracking.routes,
    labels.routes,
    tracking_page.routes,
    notifications.routes,
    settlements.routes,
    returns.routes,
    scorecards.routes,
    sandbox_carriers.routes,
    stores.routes,
    sending.routes,
    history.routes,
    messages.routes,
    templates.routes,
    media.routes,
    media.attachment_routes,
    channel_events.routes,
    costs.routes,
    channel_status.routes,
    analytics.routes,
    ticket_search.routes,
    support.routes,
    agents.routes,
    presence.routes,
    notification_settings.routes,
    agents.settings_routes,
    ticket_labels.routes,
    teams.routes,
    saved_replies.routes,
    saved_replies.ticket_routes,
    scheduled_replies.ticket_routes,
    scheduled_replies.routes,
    views.routes,
    macros.routes,
    macros.ticket_routes,
    drafts.routes,
    mentions.routes,
    business_hours.routes,
    sla_policies.routes,
    ratings.routes,
    sandbox.routes,
    channel_connections.routes,
    carrier_connections.carrier_routes,
    webhook_endpoints.routes,
    webhook_deliveries.endpoint_routes,
    webhook_deliveries.routes,
    api_keys.routes,
    api_calls.routes,
]

CLOCK = DueQueue("company clocks")
"""Wakes a job when a company's test clock was moved."""

JOBS: list[Job] = [
    Job("fold counters", 300, counters.fold, counters.QUEUE),
    Job("catch up with webhooks", 300, replay_jobs.catch_up, endpoint_actions.CATCH_UP),
    Job("reconcile webhook counters", 3600, dispatch_jobs.reconcile_counter),
    Job("expire keys", 60, access_actions.expire_keys, CLOCK),
    Job("bring back shipments", 30, shipping_jobs.reschedule, CLOCK),
    Job("update customer copies", 300, customer_copies.update_copies, customer_copies.QUEUE),
    Job("backfill order amounts", 30, order_jobs.backfill_amounts),
    Job("expire points", 30, expiry_jobs.expire_overdue, CLOCK),
    Job("check wallets", 60, reconciliation_jobs.check_wallets),
    Job("resolve silent tickets", 30, support_jobs.resolve_silent, CLOCK),
    Job("wake snoozed tickets", 15, support_jobs.wake_snoozed, CLOCK),
    Job("mark missed targets", 15, support_jobs.mark_breached, CLOCK),
    Job("assign waiting tickets", 5, support_jobs.assign_waiting),
    Job("forget idempotency records", 60, retention.purge_idempotency_records),
    Job("forget quotes", 60, quote_actions.purge_expired),
    Job("forget sessions", 3600, people_actions.purge_old),
    Job("forget imports", 3600, import_actions.purge_old),
    Job("forget carrier callbacks", 3600, tracking_hooks.purge_old),
    Job("forget carrier calls", 3600, call_log.purge_old),
    Job("forget channel callbacks", 3600, inbound_hooks.purge_old),
    Job("forget the sandbox's outbox", 3600, sandbox_jobs.purge_old),
    Job("forget widget sessions", 600, widget_jobs.purge_old),
    Job("give up on unsettled messages", 30, message_jobs.expire_unsettled, CLOCK),
    Job("purge labels", 3600, label_actions.purge_old),
    Job("purge channel events", 3600, channel_event_actions.purge_old),
    Job("index areas", 60, area_imports.index_missing),
    Job("backfill timeline counters", 60, timeline_jobs.backfill_counters),
]
"""The names are stored as lease names and metric labels, so they never change; the functions have the current words."""


def build_jobs(settings: Settings) -> list[Job]:
    """All jobs, including those that depend on the operator's settings."""
    keep_partitions = partial(retention.keep_partitions, history_months=settings.history_months)
    jobs = [*JOBS, Job("keep partitions", 3600, keep_partitions)]
    if settings.retention.months:
        jobs.append(Job("purge old rows", 600, partial(retention.purge_rows, months=settings.retention.months)))
    if settings.secret_key:
        reseal = partial(rotation.reseal_requested, tables=SEALED_TABLES, vault=Vault(settings.secret_key))
        jobs.append(Job("reseal secrets", 10, reseal))
    return jobs


SEALED_TABLES: list[SealedTable] = [
    SealedTable("api_requests", history_actions.reseal),
    SealedTable("carrier_connections", carrier_connection_actions.reseal),
    SealedTable("channel_connections", channel_connection_actions.reseal),
    SealedTable("deferred_messages", deferrals.reseal),
    SealedTable("webhook_endpoints", endpoint_actions.reseal),
]
"""Everything that is sealed with SAPA_SECRET_KEY, for its rotation."""

SERVICES: list[Service] = [
    Service("webhooks", dispatcher.deliver),
    Service("webhook probes", probe_jobs.probe_suspended),
    Service("mail to owners", notice_jobs.mail_owners),
    Service("uploads", uploads.import_uploads),
    Service("sandbox callbacks", sandbox_callbacks.post_due),
    Service("sandbox subscribers", sandbox_subscriptions.post_subscribed),
    Service("sandbox mail", sandbox_mail.serve_mail),
    Service("channel tokens", channel_connection_jobs.renew_due),
    Service("channel statuses", channel_status_jobs.refresh_due),
    Service("inbound", inbound_jobs.process),
    Service("deferred messages", sending_jobs.send_deferred),
    Service("templates", template_sync.synchronise),
    Service("media", media_jobs.fetch_waiting),
    Service("file purge", file_jobs.purge),
    Service("thumbnails", file_jobs.make_thumbnails),
    Service("files to the bucket", file_jobs.move_to_bucket),
    Service("carrier callbacks", shipping_jobs.process_callbacks),
    Service("bookings", shipping_jobs.reconcile_bookings),
    Service("tracking", shipping_jobs.poll_carriers),
    Service("labels", label_jobs.print_waiting),
    Service("notifications", notification_jobs.send_queued),
    Service("backups", backup_jobs.make_backups),
    Service("consent confirmations", confirmation_jobs.send_queued),
    Service("rating questions", rating_jobs.send_queued),
    Service("scheduled replies", scheduled_reply_jobs.send_due),
    Service("mail to people who are away", away_mail_jobs.mail_away),
]

FREE_WORK: list[FreeWork] = [
    webhook_lanes.free_lanes,
    inbound_jobs.free_lanes,
    uploads.free_imports,
    label_jobs.free_batches,
]
"""What a worker holds under its name, besides leases. When it dies, a peer frees it."""

HOOKS: list[Hook[AppContext]] = [
    Hook(carrier_connection_actions.HOOKS, tracking_hooks.receive_callback, tracking_hooks.find_target),
    *inbound_hooks.HOOKS,
]
"""Where providers call back."""

SIMULATORS: list[Hook[AppContext]] = [*carrier_simulators.HOOKS, *channel_simulators.HOOKS]
"""Stand in for the providers in the test environment. Sapa reaches them on a process's loopback address, programs
outside over `sandbox_pages`."""

PAGES: list[Callable[[AppContext], list[Route]]] = [
    media_pages.build_pages,
    picture_pages.build_pages,
    widget_pages.pages,
    tracking_pages.build_pages,
    consent_pages.build_pages,
    rating_pages.build_pages,
    sandbox_pages.build_pages,
]
"""Pages for browsers, besides the API's documents."""


def build_process_context(settings: Settings, database: Database) -> AppContext:
    """The context of a process, whose loopback address serves the hooks and the simulators."""
    hooks = [*HOOKS, *SIMULATORS]
    return build_context(
        settings,
        database,
        lambda context, call: answer_hook(context, hooks, call),
        lambda context, path: find_hook_account(context, hooks, path),
    )
