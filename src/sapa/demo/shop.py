"""Demo data: realistic, the same at every run, created through the API's own actions."""

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import msgspec

from sapa.access import actions as access
from sapa.access.calls.recorder import CallRecorder
from sapa.access.types import KeyIn, Scope
from sapa.customers import actions as customers
from sapa.customers import bulk
from sapa.customers.bulk import BulkCustomer
from sapa.customers.subscriptions import ConsentProofIn
from sapa.customers.types import AddressIn, CustomerPatch, Subscription
from sapa.db.pool import Database, Tx
from sapa.demo import conversations, inbox
from sapa.demo.calls import KEY_NAME, build_calls
from sapa.demo.company import DEMO_COMPANY
from sapa.demo.orders import Sale, build_drafts, build_sales
from sapa.demo.parcels import LOOKS, DemoParcel, build_parcels, build_statement
from sapa.demo.products import build_products
from sapa.demo.templates import TEMPLATES
from sapa.messaging.costs import actions as costs
from sapa.messaging.costs.rate_files import parse_rates
from sapa.messaging.templates import actions as templates
from sapa.orders import actions as orders
from sapa.orders.drafts import actions as drafts
from sapa.orders.settlement.types import PaymentIn, RefundIn
from sapa.products import actions as products
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.settlements import actions as settlements
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.shipments.validation import ShipmentFacts, build_shipment
from sapa.shipping.tracking_page import actions as tracking_page
from sapa.shipping.types import StoredShipment
from sapa.support.business_hours import actions as business_hours
from sapa.support.labels import actions as labels
from sapa.support.macros import actions as macros
from sapa.support.saved_replies import actions as saved_replies
from sapa.support.sla import actions as sla
from sapa.support.teams import actions as teams
from sapa.support.views import actions as views
from sapa.values.company import Company

RATES = Path(__file__).with_name("rates.csv")
CUSTOMERS = 3_000
ORDERS = 4_000
PARCELS = 60
BATCH = 100
FIRST_ORDER = "demo-00001"
PAID_AFTER = timedelta(hours=2)

Report = Callable[[str, int, int], None]
"""Called with the resource, the number done and the total."""

FIRST_NAMES = (
    "Ayu Budi Citra Dewi Eko Fitri Galih Hana Indra Joko Kartika Lestari Made Nurul Oki Putri Rizky Sari Teguh Utami "
    "Vina Wahyu Yoga Zahra Agus Bayu Dian Eka Farhan Gita"
).split()
LAST_NAMES = (
    "Santoso Wijaya Pratama Hidayat Nugroho Saputra Kusuma Siregar Simanjuntak Hartono Setiawan Rahmawati Anggraini "
    "Permana Susanto Lubis Nasution Wibowo Handayani Maulana"
).split()
CITIES = (
    ("Jakarta Selatan", "DKI Jakarta", "12190"),
    ("Bandung", "Jawa Barat", "40111"),
    ("Surabaya", "Jawa Timur", "60271"),
    ("Yogyakarta", "DI Yogyakarta", "55281"),
    ("Semarang", "Jawa Tengah", "50132"),
    ("Medan", "Sumatera Utara", "20111"),
    ("Makassar", "Sulawesi Selatan", "90111"),
    ("Denpasar", "Bali", "80232"),
)
STREETS = ("Merdeka", "Sudirman", "Diponegoro", "Gajah Mada", "Ahmad Yani", "Kartini", "Veteran", "Melati")
TAGS = ("vip", "grosir", "member", "newsletter", "reseller")
PROOF = ConsentProofIn(text="Kirimi saya promo lewat WhatsApp.", place="https://toko.example/daftar")
PROVEN = 20
"""How many customers have a proof of what they subscribe to."""


async def fill(database: Database, report: Report) -> Company:
    """Fills the demo company's test environment; existing data stays."""
    async with database.transaction() as tx:
        company = await access.find_or_create_company(tx, DEMO_COMPANY, "test")
        is_open = await orders.find_by_order_id(tx, company, FIRST_ORDER) is not None
    await _fill_rates(database, company)
    await _fill_customers(database, company, report)
    if not is_open:  # orders have changed the stock since
        await _fill_products(database, company, report)
    await _fill_orders(database, company, report)
    if not is_open:
        await _fill_drafts(database, company, report)
    await _fill_parcels(database, company, report)
    await _fill_templates(database, company, report)
    await _fill_inbox(database, company)
    await _fill_calls(database, company, report)
    return company


async def _fill_rates(database: Database, company: Company) -> None:
    """Only for this company: the prices are invented."""
    rates = parse_rates(RATES.read_bytes(), company.id)
    async with database.transaction() as tx:
        await costs.import_rates(tx, company.id, rates)


async def _fill_customers(database: Database, company: Company, report: Report) -> None:
    people = [BulkCustomer(external_id, None, person) for external_id, person in build_customers()]
    people[:PROVEN] = [msgspec.structs.replace(person, proof=PROOF) for person in people[:PROVEN]]
    for start in range(0, len(people), BATCH):
        async with database.transaction() as tx:
            some = people[start : start + BATCH]
            for person, outcome in zip(some, await bulk.store_together(tx, company, some), strict=True):
                if outcome is None:
                    await bulk.store(tx, company, person)
        report("customers", min(start + BATCH, len(people)), len(people))


async def _fill_products(database: Database, company: Company, report: Report) -> None:
    catalogue = list(build_products())
    async with database.transaction() as tx:
        for number, (product_id, product) in enumerate(catalogue, start=1):
            await products.upsert(tx, company, product_id, product)
            report("products", number, len(catalogue))


async def _fill_templates(database: Database, company: Company, report: Report) -> None:
    """The worker submits them to the simulator, which reviews them."""
    for number, template in enumerate(TEMPLATES, start=1):
        async with database.transaction() as tx:
            if not await templates.has_template(tx, company, template.name, template.language):
                await templates.create(tx, company, template)
        report("templates", number, len(TEMPLATES))


async def _fill_inbox(database: Database, company: Company) -> None:
    """Once, with the conversations: people change it afterwards."""
    async with database.transaction() as tx:
        if (await business_hours.get_hours(tx, company)).updated_at is not None:
            return
        await business_hours.update(tx, company, inbox.HOURS)
        label_ids = {label.name: (await labels.create(tx, company, label)).id for label in inbox.LABELS}
        for team in inbox.TEAMS:
            await teams.create(tx, company, team)
        for saved_reply in inbox.SAVED_REPLIES:
            await saved_replies.create(tx, company, saved_reply)
        for view in inbox.VIEWS:
            await views.create(tx, company, view)
        for macro in inbox.MACROS:
            await macros.create(tx, company, macro)
        for policy in inbox.POLICIES:
            await sla.create(tx, company, policy)
        await conversations.fill(tx, company, [person for _, person in build_customers()], label_ids)


async def _fill_calls(database: Database, company: Company, report: Report) -> None:
    """Made with a key that was revoked since: nobody knows its value."""
    async with database.transaction() as tx:
        if any(key.name == KEY_NAME for key in await access.list_keys(tx, company.id)):
            return
        new = await access.create_key(tx, company.id, KeyIn(name=KEY_NAME, scopes=[Scope.ORDERS_READ]))
        await access.revoke_key(tx, new.info.id)
    calls = list(build_calls(company.id, new.info.id, datetime.now(UTC)))
    recorder = CallRecorder(database)
    recorder.add(calls)
    await recorder.close()
    report("API calls", len(calls), len(calls))


async def _fill_orders(database: Database, company: Company, report: Report) -> None:
    async with database.connection() as db:
        people = await customers.list_all(db, company.id)
        stored = await products.list_all(db, company.id)
    people.sort(key=lambda person: person.external_id or "")
    buyers = [person for person in people if (person.external_id or "").startswith("demo-")]
    variants = [
        variant["id"]
        for product in sorted(stored, key=lambda product: product.product_id)
        for variant in msgspec.json.decode(product.variants)
        if product.product_id.startswith("demo-")
    ]
    sales = list(build_sales(ORDERS, buyers, variants, datetime.now(UTC)))
    for start in range(0, len(sales), BATCH):
        async with database.transaction() as tx:
            await _sell(tx, company, sales[start : start + BATCH])
        report("orders", min(start + BATCH, len(sales)), len(sales))


async def _sell(tx: Tx, company: Company, sales: Sequence[Sale]) -> None:
    for sale in sales:
        if await orders.find_by_order_id(tx, company, sale.order.order_id or "") is not None:
            continue
        order = await orders.place(tx, company, sale.order, placed_at=sale.placed_at)
        is_paid = sale.update is not None and sale.update.financial_status == "paid"
        if is_paid or sale.is_deposit:
            amount = order.total if is_paid else Decimal(int(order.total / 2))
            paid_at = sale.placed_at + PAID_AFTER
            payment = PaymentIn(amount=amount, method=sale.method, paid_at=paid_at)
            await orders.record_payment(tx, company, order.id, payment)
        if sale.update is not None:
            await orders.update(tx, company, order.id, sale.update)
        if is_paid and sale.is_returned:
            returned = RefundIn(amount=Decimal(int(order.total / 4)), reason="Kemasan rusak")
            await orders.refund(tx, company, order.id, returned)


async def _fill_drafts(database: Database, company: Company, report: Report) -> None:
    bodies = list(build_drafts())
    async with database.transaction() as tx:
        for number, body in enumerate(bodies, start=1):
            await drafts.create(tx, company, body)
            report("draft orders", number, len(bodies))


async def _fill_parcels(database: Database, company: Company, report: Report) -> None:
    """Of the newest orders, sent with the first provider that needs no carrier's API."""
    async with database.transaction() as tx:
        if await shipments.list_newest(tx, company.id, None, 1):
            return
        found = [
            await orders.find_by_order_id(tx, company, f"demo-{n:05d}") for n in range(ORDERS, ORDERS - PARCELS, -1)
        ]
        newest = [order for order in found if order is not None and order.status == "active"]
        now = (await access.read_clock(tx, company.id)).real
        await tracking_page.save_settings(tx, company, LOOKS)
    provider = next(name for name, traits in PROVIDERS.items() if traits.is_local)
    parcels, delivered = list(build_parcels(provider, newest, now)), []
    for number, parcel in enumerate(parcels, start=1):
        async with database.transaction() as tx:
            shipment = await _send(tx, company, parcel)
        delivered += [shipment] if shipment.cod_collected_at is not None else []
        report("parcels", number, len(parcels))
    if delivered:
        async with database.transaction() as tx:
            await settlements.settle(tx, company, build_statement(provider, delivered, now))


async def _send(tx: Tx, company: Company, parcel: DemoParcel) -> StoredShipment:
    draft = build_shipment(company, parcel.body, ShipmentFacts(order=parcel.order))
    shipment = await shipments.create(tx, company, draft)
    for status, at in parcel.steps:
        after = msgspec.structs.replace(shipment, shipping_status=status, event_timestamp=at)
        shipment = await shipments.store(tx, company, shipment, after)
    return shipment


def build_customers() -> Iterator[tuple[str, CustomerPatch]]:
    """Each customer with its external id."""
    dice = random.Random(17)  # noqa: S311 - the same people every time
    for number in range(1, CUSTOMERS + 1):
        yield f"demo-{number:05d}", _person(dice, number)


def _person(dice: random.Random, number: int) -> CustomerPatch:
    first, last = dice.choice(FIRST_NAMES), dice.choice(LAST_NAMES)
    city, province, zip_code = dice.choice(CITIES)
    address = AddressIn(
        address1=f"Jl. {dice.choice(STREETS)} No. {dice.randint(1, 250)}",
        city=city,
        province=province,
        country="Indonesia",
        zip=zip_code,
    )
    return CustomerPatch(
        email=f"{first}.{last}.{number}@example.com".lower(),
        phone_number=f"+62812{number + 10_000_000:08d}",
        first_name=first,
        last_name=last,
        tags=sorted(dice.sample(TAGS, dice.randint(0, 2))),
        addresses=[address],
        additional_data={"visits": dice.randint(0, 40), "source": dice.choice(("toko", "online", "bazar"))},
        subscription_status=[Subscription("CRM", dice.choice(("subscribe", "subscribe", "unsubscribe")))],
    )
