from collections.abc import Iterator

import pytest
from msgspec import Struct

from sapa.db import listing as listings
from sapa.db import sql as statements
from sapa.db.codecs import ARRAYS
from sapa.db.listing import Listing
from sapa.db.pool import Connection
from sapa.db.sql import Statement, sql
from tests.house.schema_rules import DIRECTORY
from tests.house.statement_rules import (
    foreign_inserts,
    is_of_company,
    listed_statements,
    name_statements,
    unconfined,
    uncounted,
    unfit_columns,
)

CROSSING = {
    "sapa.access.queries.ANNOUNCE",
    "sapa.access.queries.EXPIRE_KEYS",
    "sapa.access.queries.FIND_KEY",
    "sapa.access.queries.HAS_TIME_ZONE",
    "sapa.access.queries.INSERT_COMPANY",
    "sapa.access.queries.LIST_COMPANIES",
    "sapa.access.queries.LIST_KEYS",
    "sapa.access.queries.LOAD_KEY",
    "sapa.access.queries.RECORD_USE",
    "sapa.access.queries.LOCK_FIRST_START",
    "sapa.backups.queries.COUNT_FILES_IN_BUCKET",
    "sapa.backups.queries.FIND_LAST",
    "sapa.backups.queries.FIND_NEWEST",
    "sapa.backups.queries.FINISH_RUN",
    "sapa.backups.queries.GET_AGES",
    "sapa.backups.queries.GET_VERSION",
    "sapa.backups.queries.INSERT_FAILED",
    "sapa.backups.queries.LIST_FOREIGN_KEYS",
    "sapa.backups.queries.LIST_INDEXES",
    "sapa.backups.queries.LIST_MIGRATIONS",
    "sapa.backups.queries.LIST_PARTITIONS",
    "sapa.backups.queries.LIST_SEQUENCES",
    "sapa.backups.queries.LIST_TABLES",
    "sapa.backups.queries.PURGE_RUNS",
    "sapa.backups.queries.RESTART_CATCH_UPS",
    "sapa.backups.queries.SET_SEQUENCE",
    "sapa.backups.queries.START_RUN",
    "sapa.work.queries.GET_BACKUP_FIGURES",
    "sapa.db.queries.COMPANIES_TO_FOLD",
    "sapa.timeline.queries.COMPANY_TO_COUNT",
    "sapa.imports.queries.COMPANIES_TO_PURGE",
    "sapa.imports.queries.FREE",
    "sapa.db.queries.NEXT_DELTAS",
    "sapa.imports.queries.NEXT_UPLOADS",
    "sapa.messaging.confirmations.queries.NEXT_CONFIRMATIONS",
    "sapa.messaging.connections.queries.NEXT_RENEWALS",
    "sapa.messaging.files.queries.NEXT_THUMBNAILS",
    "sapa.messaging.inbound.queries.NEXT_CALLBACKS",
    "sapa.messaging.media.queries.NEXT_FILES",
    "sapa.messaging.sending.queries.NEXT_DEFERRED",
    "sapa.notifications.queries.NEXT_NOTIFICATIONS",
    "sapa.orders.queries.NEXT_COPIES",
    "sapa.sandbox.queries.NEXT_CALLBACKS",
    "sapa.sandbox.subscriptions.queries.NEXT_DELIVERIES",
    "sapa.shipping.bookings.queries.NEXT_BOOKINGS",
    "sapa.shipping.labels.queries.NEXT_BATCHES",
    "sapa.shipping.tracking.queries.NEXT_CALLBACKS",
    "sapa.shipping.tracking.queries.NEXT_POLLS",
    "sapa.webhooks.dispatch.queries.NEXT_DELIVERIES",
    "sapa.webhooks.endpoints.queries.NEXT_RESUMED",
    "sapa.webhooks.notices.queries.NEXT_MAILS",
    "sapa.webhooks.probes.queries.NEXT_PROBES",
    "sapa.messaging.inbound.queries.FREE_LANES",
    "sapa.shipping.labels.queries.FREE",
    "sapa.webhooks.dispatch.queries.FREE",
    "sapa.work.queries.DELETE_EXPIRED_WORKERS",
    "sapa.work.queries.FREE_LEASES",
    "sapa.work.queries.RENEW_LEASES",
    "sapa.imports.queries.LIST_WAITING",
    "sapa.loyalty.expiry.queries.LIST_DUE",
    "sapa.loyalty.reconciliation.queries.LIST_ROUNDS",
    "sapa.messaging.inbound.queries.LIST_LANES",
    "sapa.messaging.inbound.queries.LIST_TO_PURGE",
    "sapa.messaging.channel_events.queries.LIST_TO_PURGE",
    "sapa.messaging.channel_status.queries.LIST_DUE",
    "sapa.messaging.channel_status.queries.NEXT_CHECKS",
    "sapa.messaging.confirmations.queries.LIST_DUE",
    "sapa.messaging.connections.queries.LIST_DUE",
    "sapa.messaging.costs.queries.DELETE_OTHERS",
    "sapa.messaging.costs.queries.LIST_RATES",
    "sapa.messaging.costs.queries.LOCK_RATES",
    "sapa.messaging.costs.queries.UPSERT_RATES",
    "sapa.messaging.files.queries.LIST_EXPIRED",
    "sapa.messaging.files.queries.LIST_MOVABLE",
    "sapa.messaging.files.queries.LIST_UNCHECKED",
    "sapa.messaging.files.queries.LIST_WITHOUT_THUMBNAIL",
    "sapa.messaging.files.queries.PURGE_WINDOWS",
    "sapa.messaging.media.queries.LIST_WAITING",
    "sapa.messaging.templates.queries.LIST_OWNERS",
    "sapa.messaging.messages.queries.LIST_UNSETTLED",
    "sapa.sandbox.channels.queries.PURGE_MEDIA",
    "sapa.messaging.sending.queries.LIST_ABANDONED",
    "sapa.messaging.sending.queries.LIST_DUE",
    "sapa.messaging.widget.queries.PURGE_SESSIONS",
    "sapa.messaging.widget.queries.PURGE_VISITORS",
    "sapa.messaging.widget.queries.PURGE_WINDOWS",
    "sapa.messaging.widget.queries.LIST_POSITIONS",
    "sapa.orders.backfill.queries.FIND_COMPANY",
    "sapa.orders.queries.LIST_WAITING_COPIES",
    "sapa.people.profile.queries.LIST_SESSIONS",
    "sapa.people.profile.queries.END_SESSION",
    "sapa.people.profile.queries.MARK_SEEN",
    "sapa.people.profile.queries.CHANGE",
    "sapa.people.profile.queries.FIND_ALERTS",
    "sapa.people.profile.queries.LOCK_ALERTS",
    "sapa.people.profile.queries.SAVE_ALERTS",
    "sapa.people.profile.queries.LIST_AWAY",
    "sapa.people.profile.queries.MARK_ALERTED",
    "sapa.people.queries.FIND_RECIPIENT",
    "sapa.people.queries.COUNT_FAILURE",
    "sapa.people.queries.DELETE_LINKS_OF",
    "sapa.people.queries.DELETE_MEMBERSHIP",
    "sapa.people.queries.DELETE_SESSION",
    "sapa.people.queries.DELETE_SESSIONS_OF",
    "sapa.people.queries.DELETE_BROWSERS_OF",
    "sapa.people.queries.PURGE_BROWSERS",
    "sapa.people.queries.REMEMBER_BROWSER",
    "sapa.people.queries.TRIM_BROWSERS",
    "sapa.people.queries.FIND_EXISTING_PASSWORD",
    "sapa.people.queries.FIND_LINK",
    "sapa.people.queries.FIND_ORGANISATION",
    "sapa.people.queries.FIND_PASSWORD",
    "sapa.people.queries.FIND_SESSION",
    "sapa.people.queries.CLEAR_FAILURES",
    "sapa.people.queries.PURGE_LINKS",
    "sapa.people.queries.PURGE_FAILURES",
    "sapa.people.queries.PURGE_SESSIONS",
    "sapa.people.queries.HAS_MEMBERS",
    "sapa.people.queries.INSERT_AUDIT",
    "sapa.people.queries.INSERT_LINK",
    "sapa.people.queries.INSERT_MEMBERSHIP",
    "sapa.people.queries.INSERT_SESSION",
    "sapa.people.queries.HAS_JOINED_ANOTHER",
    "sapa.people.queries.MARK_JOINED",
    "sapa.people.queries.LIST_AUDIT",
    "sapa.people.queries.LIST_MEMBERS",
    "sapa.people.queries.LIST_MEMBERSHIPS",
    "sapa.people.queries.LOCK_OWNERS",
    "sapa.people.queries.SET_LANGUAGE",
    "sapa.people.queries.SET_PASSWORD",
    "sapa.people.queries.SET_ROLE",
    "sapa.people.queries.UNCOUNT_FAILURE",
    "sapa.people.queries.USE_LINK",
    "sapa.people.queries.UPSERT_USER",
    "sapa.sandbox.queries.LIST_DUE",
    "sapa.sandbox.carriers.queries.COMPANIES_TO_PURGE",
    "sapa.sandbox.channels.queries.LIST_TO_PURGE",
    "sapa.sandbox.channels.queries.PURGE_PACES",
    "sapa.sandbox.channels.queries.PURGE_PEOPLE",
    "sapa.sandbox.subscriptions.queries.LIST_WAITING",
    "sapa.shipping.areas.queries.CLEAR_STAGING",
    "sapa.shipping.areas.queries.FIND_NAMES",
    "sapa.shipping.areas.queries.HAS_AREAS",
    "sapa.shipping.areas.queries.INSERT_DATASET",
    "sapa.shipping.areas.queries.LIST_AREAS",
    "sapa.shipping.areas.queries.LIST_DATASETS",
    "sapa.shipping.areas.queries.RETIRE_MISSING",
    "sapa.shipping.areas.queries.UPSERT_AREAS",
    "sapa.shipping.areas.queries.LOCK_CHANGES",
    "sapa.shipping.areas.queries.LIST_UNINDEXED",
    "sapa.shipping.areas.queries.INSERT_SPELLINGS",
    "sapa.shipping.areas.queries.IS_INDEXED",
    "sapa.shipping.areas.queries.CLEAR_WORDS",
    "sapa.shipping.areas.queries.CLEAR_SPELLINGS",
    "sapa.shipping.areas.queries.INSERT_WORDS",
    "sapa.shipping.areas.queries.LIST_SIMILAR",
    "sapa.shipping.areas.queries.SEARCH",
    "sapa.shipping.labels.queries.COMPANIES_TO_PURGE",
    "sapa.shipping.labels.queries.LIST_WAITING",
    "sapa.shipping.shipments.queries.FIND_TRACKING_PAGE",
    "sapa.notifications.queries.LIST_DUE",
    "sapa.shipping.bookings.queries.LIST_DUE",
    "sapa.shipping.bookings.queries.LIST_DUE_IN_TURN",
    "sapa.shipping.bookings.queries.LIST_DUE_OF_SHARDS",
    "sapa.shipping.tracking.queries.COMPANIES_TO_PURGE",
    "sapa.shipping.tracking.queries.LIST_DUE",
    "sapa.shipping.tracking.queries.LIST_DUE_IN_TURN",
    "sapa.shipping.tracking.queries.LIST_DUE_OF_SHARDS",
    "sapa.shipping.carriers.queries.COMPANIES_TO_PURGE",
    "sapa.shipping.connections.queries.FIND_BY_TOKEN",
    "sapa.shipping.bookings.queries.LIST_CANCELLING",
    "sapa.shipping.bookings.queries.LIST_CANCELLING_IN_TURN",
    "sapa.shipping.bookings.queries.LIST_CANCELLING_OF_SHARDS",
    "sapa.shipping.tracking.queries.LIST_UNTRACKED",
    "sapa.shipping.tracking.queries.LIST_UNTRACKED_IN_TURN",
    "sapa.shipping.tracking.queries.LIST_UNTRACKED_OF_SHARDS",
    "sapa.shipping.bookings.queries.LIST_REWOUND",
    "sapa.shipping.shipments.queries.LIST_REWOUND",
    "sapa.shipping.quotes.queries.PURGE",
    "sapa.support.queries.LIST_SILENT",
    "sapa.support.queries.LIST_SNOOZED",
    "sapa.support.presence.queries.LIST_UNASSIGNED",
    "sapa.support.ratings.queries.LIST_DUE",
    "sapa.support.ratings.queries.NEXT_DUE",
    "sapa.support.scheduled_replies.queries.LIST_DUE",
    "sapa.support.scheduled_replies.queries.LIST_DUE_IN_TURN",
    "sapa.support.scheduled_replies.queries.NEXT_DUE",
    "sapa.support.queries.LIST_BREACHED",
    "sapa.webhooks.replay.queries.LIST_RESUMED",
    "sapa.webhooks.deliveries.queries.FIND_COMPANY_OF_DELIVERY",
    "sapa.db.planning.IS_SHARDED",
    "sapa.webhooks.dispatch.queries.LIST_LANES",
    "sapa.webhooks.dispatch.queries.LIST_LANES_OF_SHARDS",
    "sapa.webhooks.dispatch.queries.RECONCILE_COUNTER",
    "sapa.webhooks.endpoints.queries.FIND_COMPANY",
    "sapa.webhooks.tokens.queries.FIND_COMPANY",
    "sapa.webhooks.tokens.queries.REVOKE",
    "sapa.webhooks.notices.queries.LIST_DUE",
    "sapa.webhooks.probes.queries.LIST_DUE",
    "sapa.work.queries.ADVANCE_ROTATION",
    "sapa.work.queries.COUNTER_BACKLOG",
    "sapa.work.queries.DELETE_ROTATIONS",
    "sapa.work.queries.DELIVERY_BACKLOG",
    "sapa.work.queries.COUNT_DRIFT",
    "sapa.work.queries.FIND_COMPANY_FROM",
    "sapa.work.queries.FIND_ROTATION",
    "sapa.work.queries.FINISH_ROTATION",
    "sapa.work.queries.LOCK_ROTATION",
    "sapa.work.queries.START_ROTATION",
    "sapa.work.queries.RELEASE_LEASES",
    "sapa.work.queries.TAKE_LEASE",
    "sapa.work.queries.PURGE_IDEMPOTENCY",
    "sapa.work.queries.PURGE_ROWS",
    "sapa.work.queries.KEEP_MONTHS",
    "sapa.work.queries.KEEP_DAYS",
}
"""The statements that work for more than one company. A new one is a decision, and is made here."""


COUNTED = {"webhook_queue": "webhook_queue"}
"""Tables of which every row is counted, and their counters."""


class Named(Struct):
    id: str
    first_name: str


@pytest.fixture
def forgotten() -> Iterator[None]:
    """What a test declares, the product's registries do not keep."""
    before, listed = len(statements.REGISTRY), len(listings.REGISTRY)
    yield
    del statements.REGISTRY[before:], listings.REGISTRY[listed:]


@pytest.fixture
async def company_tables(owner: Connection) -> set[str]:
    rows = await owner.fetch(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace::regnamespace::text = 'public'"
    )
    return {row[0] for row in rows} - DIRECTORY


def test_every_statement_has_a_name() -> None:
    assert [name for name in name_statements() if not name.startswith("sapa.")] == []


def test_the_statements_that_cross_companies_are_these() -> None:
    assert {name for name, statement in name_statements().items() if statement.crosses is not None} == CROSSING


def test_every_statement_that_changes_the_queue_counts() -> None:
    assert uncounted(name_statements(), COUNTED) == []


@pytest.mark.parametrize(
    "text", ["DELETE FROM webhook_queue WHERE company_id = $1", "INSERT INTO webhook_queue (company_id) VALUES ($1)"]
)
def test_a_statement_that_does_not_count_is_seen(text: str) -> None:
    planted: Statement[None] = Statement(text, None, None)
    assert uncounted({"planted": planted}, COUNTED)


async def test_every_statement_fits_the_schema_and_its_struct(owner: Connection) -> None:
    assert await unfit_columns(owner, name_statements()) == []


async def test_a_connection_knows_every_array_type_when_it_is_opened(owner: Connection) -> None:
    """The driver looks up one that it does not know inside the transaction of the statement that needs it."""
    found = set()
    for statement in [*name_statements().values(), *dict(listed_statements()).values()]:
        prepared = await owner.prepare(statement.text)
        types = [*prepared.get_parameters(), *(column.type for column in prepared.get_attributes())]
        found |= {each.name.removesuffix("[]") for each in types if each.kind == "array"}
    assert found == {"text", *ARRAYS}


async def test_every_combination_of_a_list_fits_the_schema_and_its_struct(owner: Connection) -> None:
    combinations = dict(listed_statements())
    assert len(combinations) > 50
    assert await unfit_columns(owner, combinations) == []


async def test_every_statement_keeps_to_its_company(owner: Connection, company_tables: set[str]) -> None:
    assert await unconfined(owner, name_statements(), company_tables) == []


async def test_every_combination_of_a_list_keeps_to_its_company(owner: Connection, company_tables: set[str]) -> None:
    assert await unconfined(owner, dict(listed_statements()), company_tables) == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM customers",
        "SELECT id FROM customers WHERE id = $1",
        "SELECT id FROM customers WHERE company_id = $2 AND id = $1",
        "UPDATE customers SET first_name = $2 WHERE id = $1",
        "DELETE FROM customers WHERE id = $1",
        "INSERT INTO customers (id, company_id) VALUES ($2, $1)",
        "INSERT INTO organisations (name) SELECT first_name FROM customers WHERE company_id = $1",
    ],
)
def test_a_statement_without_its_company_cannot_be_declared(text: str) -> None:
    before = len(statements.REGISTRY)
    with pytest.raises(ValueError, match="not confined"):
        sql(text)
    assert len(statements.REGISTRY) == before


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM customers -- company_id = $1",
        "SELECT 'company_id = $1', id FROM customers",
        "SELECT id FROM customers WHERE company_id = $1 OR id = $2",
        "SELECT a.id FROM customers a JOIN customers b ON b.id = a.id WHERE a.company_id = $1",
        "SELECT id FROM customers WHERE NOT (company_id = $1)",
        "SELECT id FROM customers WHERE company_id = $1 AND id = $2 OR company_id = $3",
        "WITH gone AS (DELETE FROM customers RETURNING id) SELECT id FROM customers WHERE company_id = $1",
        "SELECT (SELECT count(*) FROM events) FROM customers WHERE company_id = $1",
    ],
)
async def test_a_statement_that_only_seems_confined_is_seen(
    owner: Connection, company_tables: set[str], text: str
) -> None:
    planted: Statement[None] = Statement(text, None, None)
    assert await unconfined(owner, {"planted": planted}, company_tables)


@pytest.mark.parametrize(
    ("condition", "confined"),
    [
        ("(company_id = $1)", True),
        ("((company_id = $1) AND (id = $2))", True),
        ("((r.company_id = $1) AND ((a = 1) OR (b = 2)))", True),
        ("(((company_id = $1) AND (a = 1)) OR ((company_id = $1) AND (b = 2)))", True),
        ("((company_id = $1) OR (id = $2))", False),
        ("((a = 1) AND ((company_id = $1) OR (id = $2)))", False),
        ("(company_id <> $1)", False),
        ("(company_id = $10)", False),
        ("(company_id = $2)", False),
    ],
)
def test_a_plans_condition_is_read_as_it_is_meant(condition: str, confined: bool) -> None:
    assert is_of_company(condition) is confined


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("INSERT INTO customers (company_id, id) VALUES ($1, $2)", 0),
        ("INSERT INTO customers AS c (company_id, id) SELECT $1, $2", 0),
        ("INSERT INTO customers (company_id, id) VALUES ($2, $1)", 1),
        ("INSERT INTO customers (id, company_id) VALUES ($1, $2)", 1),
        ("INSERT INTO customers (company_id, id) SELECT company_id, id FROM other WHERE company_id = $1", 1),
    ],
)
def test_an_insert_for_another_company_is_seen(text: str, seen: int) -> None:
    assert len(foreign_inserts(text)) == seen


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM customers WHERE company_id = $1",
        "SELECT first_name, id FROM customers WHERE company_id = $1",
        "SELECT id, first_name, last_name FROM customers WHERE company_id = $1",
        "SELECT id, first_name AS name FROM customers WHERE company_id = $1",
        "SELECT id, given_name FROM customers WHERE company_id = $1",
        "SELECT id, first_name FROM clients WHERE company_id = $1",
    ],
)
async def test_columns_that_are_not_the_structs_are_seen(owner: Connection, text: str) -> None:
    assert len(await unfit_columns(owner, {"planted": Statement(text, Named, None)})) == 1


async def test_a_list_with_a_filter_that_the_schema_lacks_is_seen(owner: Connection, forgotten: None) -> None:
    Listing("customers", row=Named, filters={"city": "city = {}"}, sorts={"name": "first_name"}, counter="customers")
    unfit = await unfit_columns(owner, dict(listed_statements()))
    assert unfit
    assert all("city" in line for line in unfit)
