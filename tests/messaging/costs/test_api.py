"""What messages cost: fixed once, when they arrive, and reported by day, template and channel."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import msgspec
import pytest

from sapa.access.actions import get_company
from sapa.db.pool import Database
from sapa.messaging.channels.interface import ReportedPricing, Source, StatusReport
from sapa.messaging.costs import queries
from sapa.messaging.messages import actions as messages
from tests.cli.command import Outcome, sapa
from tests.conftest import Installation
from tests.db.scratch import connect
from tests.factories import Environments, make_key
from tests.messaging.conftest import connect_messaging
from tests.messaging.conversation_steps import list_events
from tests.messaging.send_steps import NUMBER, await_message, magic, make_template, send

Json = dict[str, Any]
Import = Callable[..., Outcome]

HEADER = "country,category,date_from,currency,price"
CARD = ["ID,service,2026-01-01,IDR,365.25", "US,service,2026-01-01,USD,0.0041", "*,marketing,2026-01-01,USD,0.06"]
COLUMNS = ["currency", "messages", "billableMessages", "unpricedMessages", "amount"]


@pytest.fixture
def import_rates(installation: Installation, company: Environments, tmp_path: Path) -> Import:
    """Imports rates for the test environment."""

    def run(*lines: str, options: tuple[str, ...] = (), company_id: int | None = company.test) -> Outcome:
        file = tmp_path / "rates.csv"
        file.write_text("\n".join([HEADER, *lines]))
        owner = () if company_id is None else ("--company", str(company_id))
        return sapa(installation.data, "rates", "import", str(file), *owner, *options, "--json")

    return run


async def get_costs(client: httpx.AsyncClient, **query: str) -> Json:
    answer = await client.get("/costs", params=query)
    assert answer.status_code == 200, answer.text
    report: Json = answer.json()["data"]
    return report


def is_priced(message: Json) -> bool:
    return bool(message["pricing"]) and message["pricing"]["amount"] is not None


async def apply(database: Database, company_id: int, report: StatusReport) -> None:
    async with database.transaction() as tx:
        company = await get_company(tx, company_id)
        await messages.apply(tx, company, Source.MSGAPP_CLOUD, report, datetime.now(UTC))


async def test_a_message_has_its_cost_when_it_arrives(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, import_rates: Import
) -> None:
    assert import_rates(*CARD).json() == {"rates": 3, "created": 3, "changed": 0, "removed": 0}
    sent = await send(sandbox, to=NUMBER)
    assert sent["pricing"] is None
    message = await await_message(sandbox, sent["messageId2"], lambda message: message["status"] == "read")
    expected = {"category": "service", "type": "regular", "billable": True, "country": "ID"}
    assert message["pricing"] == {**expected, "amount": 365.25, "currency": "IDR"}
    updates = await list_events(database, company.test, "message.status.updated")
    amounts = {update["status"]: (update["pricing"] or {}).get("amount") for update in updates}
    assert amounts == {"sent": None, "delivered": 365.25, "read": 365.25}
    report = await get_costs(sandbox)
    today = datetime.now(ZoneInfo("Asia/Jakarta")).date()
    assert report["timeZone"] == "Asia/Jakarta"
    assert datetime.fromisoformat(report["endDate"]).date() - today <= timedelta(days=1)
    (line,) = report["lines"]
    assert [line[name] for name in COLUMNS] == ["IDR", 1, 1, 0, 365.25]
    assert (line["templateId"], line["source"]) == (None, None)


async def test_a_template_is_charged_by_its_category_and_country(
    sandbox: httpx.AsyncClient, import_rates: Import
) -> None:
    import_rates(*CARD)
    await make_template(sandbox, name="promo", category="MARKETING")
    body = {"to": "+447400123456", "sources": "MSGAPP_CLOUD", "template_name": "promo", "params": ["Ayu", "A1"]}
    answer = await sandbox.post("/messages/send-template", json=body)
    assert answer.status_code == 200, answer.text
    american = await send(sandbox, to=magic(101))
    message = await await_message(sandbox, answer.json()["data"]["messageId2"], is_priced)
    assert (message["pricing"]["category"], message["pricing"]["country"]) == ("marketing", "GB")
    assert (message["pricing"]["amount"], message["pricing"]["currency"]) == (0.06, "USD")
    await await_message(sandbox, american["messageId2"], is_priced)
    by_template = await get_costs(sandbox, groupBy="template")
    found = {line["templateId"]: (line["currency"], line["messages"], line["amount"]) for line in by_template["lines"]}
    assert found == {"promo": ("USD", 1, 0.06), None: ("USD", 1, 0.0041)}
    assert [(total["currency"], total["amount"]) for total in by_template["totals"]] == [("USD", 0.0641)]
    (line,) = (await get_costs(sandbox, groupBy="channel"))["lines"]
    assert (line["source"], line["messages"], line["amount"]) == ("MSGAPP_CLOUD", 2, 0.0641)
    (only,) = (await get_costs(sandbox, groupBy="day", templateId="promo"))["lines"]
    assert only["amount"] == 0.06
    assert (await get_costs(sandbox, source="MSGAPP_COEX"))["lines"] == []
    file = await sandbox.get("/costs.csv", params={"groupBy": "template"})
    assert file.headers["content-disposition"].startswith('attachment; filename="costs-by-template-')
    assert file.text.splitlines() == [
        "template,currency,messages,billable_messages,unpriced_messages,amount",
        "promo,USD,1,1,0,0.06",
        ",USD,1,1,0,0.0041",
    ]


async def test_a_changed_card_changes_the_future_only(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, import_rates: Import
) -> None:
    import_rates(*CARD)
    first = await await_message(sandbox, (await send(sandbox))["messageId2"], is_priced)
    changed = import_rates("ID,service,2026-01-01,IDR,400", "ID,service,2026-02-01,IDR,500")
    assert changed.json() == {"rates": 2, "created": 1, "changed": 1, "removed": 0}
    late = StatusReport(
        "delivered",
        datetime.now(UTC),
        reference=first["messageId2"],
        pricing=ReportedPricing("marketing", "regular", True, "ID"),
    )
    await apply(database, company.test, late)
    second = await await_message(sandbox, (await send(sandbox))["messageId2"], is_priced)
    again = await await_message(sandbox, first["messageId2"], lambda message: message["status"] == "read")
    assert again["pricing"] == first["pricing"]
    assert (first["pricing"]["amount"], second["pricing"]["amount"]) == (365.25, 500)
    assert [total["amount"] for total in (await get_costs(sandbox))["totals"]] == [865.25]
    removed = import_rates("ID,service,2026-02-01,IDR,1", options=("--replace",))
    assert removed.json() == {"rates": 1, "created": 0, "changed": 1, "removed": 3}
    assert [total["amount"] for total in (await get_costs(sandbox))["totals"]] == [865.25]


async def test_free_and_failed_messages_cost_nothing(sandbox: httpx.AsyncClient, import_rates: Import) -> None:
    import_rates(*CARD)
    free = await send(sandbox, to=magic(150))
    failed = await send(sandbox, to=magic(111))
    message = await await_message(sandbox, free["messageId2"], is_priced)
    assert message["pricing"] == {
        "category": "referral_conversion", "type": "free_entry_point", "billable": False, "country": "US", "amount": 0,
        "currency": "IDR",
    }  # fmt: skip
    message = await await_message(sandbox, failed["messageId2"], lambda message: message["status"] == "failed")
    assert (message["pricing"]["billable"], message["pricing"]["amount"]) == (True, None)
    (total,) = (await get_costs(sandbox))["totals"]
    assert [total[name] for name in COLUMNS] == ["IDR", 1, 0, 0, 0]


async def test_a_message_without_a_rate_is_counted_and_priced_on_demand(
    installation: Installation, sandbox: httpx.AsyncClient, company: Environments, import_rates: Import
) -> None:
    sent = await send(sandbox)
    message = await await_message(sandbox, sent["messageId2"], lambda message: message["status"] == "read")
    assert (message["pricing"]["billable"], message["pricing"]["amount"]) == (True, None)
    (total,) = (await get_costs(sandbox))["totals"]
    assert [total[name] for name in COLUMNS] == [None, 1, 1, 1, None]
    import_rates(*CARD)
    assert (await get_costs(sandbox))["totals"] == [total]
    backfill = ("rates", "backfill", "--company", str(company.test), "--json")
    assert sapa(installation.data, *backfill).json() == {"priced": 1}
    (total,) = (await get_costs(sandbox))["totals"]
    assert [total[name] for name in COLUMNS] == ["IDR", 1, 1, 0, 365.25]
    assert is_priced(await await_message(sandbox, sent["messageId2"], is_priced))
    import_rates("ID,service,2026-01-01,IDR,1")
    assert sapa(installation.data, *backfill).json() == {"priced": 0}
    assert (await get_costs(sandbox))["totals"] == [total]


async def test_a_companys_own_rates_come_before_those_of_all(
    installation: Installation, sandbox: httpx.AsyncClient, company: Environments, import_rates: Import
) -> None:
    common = import_rates("TK,service,2026-01-01,IDR,700", company_id=None)
    assert common.json()["rates"] == 1
    import_rates("*,service,2026-01-01,IDR,2", company_id=company.live)
    listed = sapa(installation.data, "rates", "list", "--company", str(company.test), "--json").json()
    mine = [rate for rate in listed if rate["companyId"] == company.test or rate["country"] == "TK"]
    assert [(rate["country"], rate["price"]) for rate in mine] == [("TK", "700")]
    import_rates("*,service,2026-01-01,IDR,9")
    message = await await_message(sandbox, (await send(sandbox))["messageId2"], is_priced)
    assert message["pricing"]["amount"] == 9


def test_a_file_with_a_mistake_changes_nothing(
    installation: Installation, company: Environments, import_rates: Import
) -> None:
    refused = import_rates("ID,service,2026-01-01,IDR,1", "ID,service,never,IDR,1")
    assert refused.sentence() == "Line 3: date_from must be a date, such as 2026-10-01, not never."
    listed = sapa(installation.data, "rates", "list", "--company", str(company.test), "--json").json()
    assert [rate for rate in listed if rate["companyId"] == company.test] == []
    assert "no company" in import_rates("ID,service,2026-01-01,IDR,1", company_id=2**40).sentence().lower()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"groupBy": "month"}, "groupBy"),
        ({"startDate": "2026-1-1"}, "startDate"),
        ({"endDate": "2026-02-30"}, "endDate"),
        ({"endDate": "1999-12-31"}, "endDate"),
        ({"startDate": "2026-02-02", "endDate": "2026-02-01"}, "endDate"),
        ({"startDate": "2025-01-01", "endDate": "2026-02-01"}, "endDate"),
        ({"source": "SMS"}, "source"),
    ],
)
async def test_a_wrong_parameter_is_named(sandbox: httpx.AsyncClient, query: dict[str, str], field: str) -> None:
    for path in ("/costs", "/costs.csv"):
        answer = await sandbox.get(path, params=query)
        assert answer.status_code == 400
        assert answer.json()["error"]["details"][0]["field"] == field


async def test_costs_need_the_scope_of_messages(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.test, scopes=["orders:READ"])
    async with connect_messaging(installation, key.raw) as client:
        assert (await client.get("/costs")).status_code == 403


COSTS = """
    INSERT INTO message_costs (company_id, message_id, source, template_id, category, country, is_billable, amount,
                               currency, charged_at)
    SELECT $1, 'msg_' || n, 'MSGAPP_CLOUD', 'promo_' || n % 7, 'utility', 'ID', true, 350, 'IDR',
           now() - n * interval '1 minute'
      FROM generate_series(1, 5000) AS n"""


@pytest.mark.parametrize("grouping", ["day", "template", "channel"])
async def test_a_report_sorts_its_lines_and_not_the_messages(
    installation: Installation, database: Database, company: Environments, grouping: str
) -> None:
    async with database.transaction() as tx:
        await tx.execute(COSTS, company.test)
    async with connect(installation.server.owner_url) as owner:
        await owner.execute("ANALYZE message_costs")
    today = datetime.now(UTC).date()
    filters = (company.test, today - timedelta(days=30), today, None, None, grouping, queries.MAX_LINES)
    async with database.connection() as db:
        plan = await db.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {queries.LINES.text}", *filters)
    nodes = list_nodes(msgspec.json.decode(plan)[0]["Plan"])
    sorted_rows = [node["Actual Rows"] for node in nodes if "Sort Key" in node]
    assert sorted_rows
    assert max(sorted_rows) < 10


def list_nodes(plan: Json) -> Iterator[Json]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from list_nodes(part)
