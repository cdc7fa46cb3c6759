"""Random messages, reports in any order, and rates that change in between, beside a model of their own: what the API
says of each message adds up to its reports by day, template and channel, and to their files."""

import csv
import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import StringIO
from typing import Any
from zoneinfo import ZoneInfo

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct, field

from sapa.access.actions import get_company
from sapa.db.pool import Database, open_database
from sapa.messaging.channels.interface import Source, StatusReport
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.costs.actions import import_rates
from sapa.messaging.costs.types import MessageRate
from sapa.messaging.messages import actions as messages
from sapa.messaging.messages.types import MESSAGE_ID, NewMessage
from sapa.values.company import Company
from tests import depth
from tests.conftest import TLS, Installation
from tests.factories import make_company, make_key
from tests.messaging.channels.accounts import ACCOUNTS
from tests.orders.test_model import run

JAKARTA = ZoneInfo("Asia/Jakarta")
FIRST, LAST = date(2026, 3, 1), date(2026, 3, 20)
RECIPIENTS = {"628123456789": ["ID"], "12015550123": ["US"], "447911123456": ["GG", "GB"]}
"""Numbers, and the countries whose rates they may have; one is of Guernsey, which uses Britain's country code."""
CATEGORIES = ["marketing", "utility", "service"]
PRICES = ["0", "0.0077", "0.1", "360", "365.25", "612.123456"]
# On both sides of midnight in Jakarta, which is 17:00 in UTC.
INSTANTS = [datetime(2026, 3, day, hour, 59, 30, tzinfo=UTC) for day in (1, 5, 6, 12) for hour in (3, 16, 17)]

Key = tuple[str, str, str]
"""Country, category and currency of a rate."""


class Sent(Struct):
    """A message, and what the model knows of it."""

    source: Source
    template: str | None
    recipient: str
    category: str
    is_billable: bool
    at: datetime
    id: str = ""
    is_reported: bool = False
    """Its pricing is."""
    delivered_at: datetime | None = None
    cost: tuple[Decimal | None, str | None, date] | None = None


class Card(Struct):
    rates: dict[Key, dict[date, Decimal]] = field(default_factory=lambda: defaultdict(dict))

    def find(self, countries: Sequence[str], category: str, day: date) -> tuple[Decimal, str] | None:
        """Rupiah first, and the country before all others."""
        for place in (*countries, "*"):
            for currency in ("IDR", "USD"):
                known = [start for start in self.rates[place, category, currency] if start <= day]
                if known:
                    return self.rates[place, category, currency][max(known)], currency
        return None


MESSAGES = st.builds(
    Sent,
    source=st.sampled_from([Source.MSGAPP_CLOUD, Source.MSGAPP_COEX]),
    template=st.sampled_from([None, "promo", "order_update"]),
    recipient=st.sampled_from(list(RECIPIENTS)),
    category=st.sampled_from(CATEGORIES),
    is_billable=st.sampled_from([True, True, True, False]),
    at=st.sampled_from(INSTANTS),
)
RATES = st.tuples(
    st.sampled_from(["ID", "US", "GB", "GG", "*"]),
    st.sampled_from(CATEGORIES),
    st.sampled_from(["IDR", "USD"]),
    st.sampled_from([date(2026, 1, 1), date(2026, 3, 2), date(2026, 3, 6)]),
    st.sampled_from(PRICES).map(Decimal),
)
REPORTS = st.tuples(
    st.just("report"), st.integers(0, 5), st.sampled_from(["sent", "delivered", "read", "failed"]), st.booleans()
)
STEPS = st.lists(
    st.one_of(REPORTS, REPORTS, REPORTS, st.tuples(st.just("card"), st.lists(RATES, min_size=1, max_size=6))),
    min_size=5,
    max_size=40,
)


def test_messages_days_templates_and_channels_cost_the_same(installation: Installation) -> None:
    @settings(max_examples=depth.examples(40))
    @given(sent=st.lists(MESSAGES, min_size=1, max_size=6), steps=STEPS)
    def compare(sent: list[Sent], steps: list[Any]) -> None:
        run(play(installation, sent, steps))

    compare()


def test_a_rate_begins_at_midnight_in_the_companys_time_zone(installation: Installation) -> None:
    """Delivered ten seconds after midnight in Jakarta, and ten before it; in UTC both are on the day before."""
    at = datetime(2026, 3, 5, 16, 59, 30, tzinfo=UTC)
    sent = [Sent(Source.MSGAPP_CLOUD, None, "628123456789", "utility", True, at) for _ in range(2)]
    rates = [
        ("ID", "utility", "IDR", date(2026, 1, 1), Decimal(1)),
        ("ID", "utility", "IDR", date(2026, 3, 6), Decimal(2)),
    ]
    steps = [("card", rates), ("report", 0, "delivered", True), ("report", 1, "read", True)]
    run(play(installation, sent, steps))
    assert [message.cost and message.cost[0] for message in sent] == [2, 1]


async def play(installation: Installation, sent: list[Sent], steps: list[Any]) -> None:
    async with open_database(installation.server.app_url) as database:
        company, key = await open_company(database)
        card = Card()
        for message in sent:
            message.id = await store(database, company, message)
        base, headers = f"{installation.address}/messaging/v1", {"x-api-key": key}
        async with httpx.AsyncClient(base_url=base, headers=headers, timeout=120, verify=TLS) as api:
            for kind, *details in steps:
                if kind == "card":
                    before = [await read_pricing(api, message) for message in sent if message.cost]
                    await change_card(database, company, card, details[0])
                    assert [await read_pricing(api, message) for message in sent if message.cost] == before
                elif details[0] < len(sent):
                    await report(database, company, card, sent[details[0]], details[1], details[2])
            await compare_all(api, sent)


async def open_company(database: Database) -> tuple[Company, str]:
    made = await make_company(database)
    key = await make_key(database, made.live)
    async with database.connection() as db:
        return await get_company(db, made.live), key.raw


async def store(database: Database, company: Company, message: Sent) -> str:
    id = MESSAGE_ID.new()
    new = NewMessage(
        id=id, direction="out", source=message.source, connection_id="chan_x", identity_kind="phone",
        identity=f"+{message.recipient}", client_number=f"+{message.recipient}", connected_number="+622150001234",
        type="template" if message.template else "text", template_id=message.template, feature_source="API",
        status="pending", created_at=message.at,
    )  # fmt: skip
    async with database.transaction() as tx:
        await messages.record_outbound(tx, company, new)
    return id


async def change_card(database: Database, company: Company, card: Card, rates: Sequence[Any]) -> None:
    known = {(country, category, currency, day): price for country, category, currency, day, price in rates}
    async with database.transaction() as tx:
        imported = [
            MessageRate(company.id, country, category, day, currency, price)
            for (country, category, currency, day), price in known.items()
        ]
        await import_rates(tx, company.id, imported)
    for (country, category, currency, day), price in known.items():
        card.rates[country, category, currency][day] = price


async def report(
    database: Database, company: Company, card: Card, message: Sent, status: str, has_pricing: bool
) -> None:
    """As WhatsApp reports it, parsed by the adapter."""
    at = message.at + timedelta(seconds={"sent": 1, "delivered": 40, "read": 20, "failed": 5}[status])
    account = ACCOUNTS[message.source]
    reported: dict[str, Any] = {
        "id": f"wamid.{message.id}",
        "status": status,
        "timestamp": str(int(at.timestamp())),
        "recipient_id": message.recipient,
        "biz_opaque_callback_data": message.id,
    }
    if has_pricing:
        type = "regular" if message.is_billable else "free_entry_point"
        pricing = {"billable": message.is_billable, "pricing_model": "PMP", "type": type}
        reported["pricing"] = pricing | {"category": message.category}
    value = {"metadata": {"phone_number_id": account["phone_number_id"]}, "statuses": [reported]}
    entry = {"id": account["waba_id"], "changes": [{"field": "messages", "value": value}]}
    (item,) = CHANNELS[message.source].read_callback(account, json.dumps({"entry": [entry]}).encode())
    assert isinstance(item, StatusReport)
    async with database.transaction() as tx:
        await messages.apply(tx, company, message.source, item, datetime.now(UTC))
    follow(card, message, status, has_pricing, at)


def follow(card: Card, message: Sent, status: str, has_pricing: bool, at: datetime) -> None:
    """The rules, once more."""
    message.is_reported |= has_pricing
    if status in {"delivered", "read"}:
        message.delivered_at = min(message.delivered_at or at, at)
    if message.cost is None and message.is_reported and message.delivered_at is not None:
        day = message.delivered_at.astimezone(JAKARTA).date()
        price, currency = card.find(RECIPIENTS[message.recipient], message.category, day) or (None, None)
        amount = price if message.is_billable else Decimal(0)
        message.cost = (amount, currency if message.is_billable else currency or "IDR", day)


async def read(api: httpx.AsyncClient, path: str, **query: str) -> Any:
    response = await api.get(path, params=query)
    assert response.status_code == 200, response.text
    return json.loads(response.text, parse_float=Decimal, parse_int=Decimal)["data"]


async def read_pricing(api: httpx.AsyncClient, message: Sent) -> Any:
    return (await read(api, f"/messages/{message.id}"))["pricing"]


async def compare_all(api: httpx.AsyncClient, sent: list[Sent]) -> None:
    for message in sent:
        pricing = await read_pricing(api, message)
        assert (pricing is None) == (not message.is_reported)
        if pricing is not None:
            assert (pricing["category"], pricing["billable"]) == (message.category, message.is_billable)
            cost = message.cost or (None, None)
            assert (pricing["amount"], pricing["currency"]) == cost[:2]
    charged = [message for message in sent if message.cost]
    sums = [await compare_lines(api, charged, grouping) for grouping in ("day", "template", "channel")]
    assert sums[0] == sums[1] == sums[2]


async def compare_lines(api: httpx.AsyncClient, charged: list[Sent], grouping: str) -> dict[str | None, Decimal]:
    query = {"groupBy": grouping, "startDate": str(FIRST), "endDate": str(LAST)}
    report = await read(api, "/costs", **query)
    expected: dict[tuple[Any, str | None], list[Decimal | None]] = defaultdict(list)
    for message in charged:
        assert message.cost is not None
        amount, currency, day = message.cost
        key = {"day": str(day), "template": message.template, "channel": message.source}[grouping]
        expected[key, currency].append(amount)
    name = {"day": "day", "template": "templateId", "channel": "source"}[grouping]
    found = {(line[name], line["currency"]): (line["messages"], line["amount"]) for line in report["lines"]}
    assert len(found) == len(report["lines"])
    assert found == {key: (len(amounts), add(amounts)) for key, amounts in expected.items()}
    assert sum(line["unpricedMessages"] for line in report["lines"]) == sum(
        message.cost is not None and message.cost[0] is None for message in charged
    )
    sums: dict[str | None, Decimal] = defaultdict(Decimal)
    for line in report["lines"]:
        sums[line["currency"]] += line["amount"] or 0
    assert sums == {total["currency"]: total["amount"] or 0 for total in report["totals"]}
    await compare_file(api, query, report["lines"], name)
    return sums


async def compare_file(api: httpx.AsyncClient, query: dict[str, str], lines: list[Any], name: str) -> None:
    text = (await api.get("/costs.csv", params=query)).text
    header, *rows = csv.reader(StringIO(text))
    assert header[1:] == ["currency", "messages", "billable_messages", "unpriced_messages", "amount"]
    numbers = [(row[0], row[1], *(Decimal(cell or "-1") for cell in row[2:])) for row in rows]
    assert numbers == [
        (
            line[name] or "", line["currency"] or "", line["messages"], line["billableMessages"],
            line["unpricedMessages"], -1 if line["amount"] is None else line["amount"],
        )
        for line in lines
    ]  # fmt: skip


def add(amounts: list[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if known else None
