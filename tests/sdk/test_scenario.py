"""A shop's day with the Python SDK on a real server, over all domains: once with calls that wait, once in asyncio."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import pytest

from sapa.domains import ROUTES
from sapa_client import AsyncSapa, Sapa, errors, types
from tests.shipping.parcels import DELIVERY, PACKAGE, SENDER

Seen = TypeVar("Seen")
PATIENCE = 120


def wait_for(look: Callable[[], Seen | None]) -> Seen:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if (seen := look()) is not None:
            return seen
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")


def party(fields: dict[str, object]) -> types.PartyIn:
    """Of a sender or a recipient, as the tests of shipping have them."""
    coordinates = fields["coordinates"]
    assert isinstance(coordinates, dict)
    return types.PartyIn(
        name=str(fields["name"]),
        phone=str(fields["phone"]),
        address=str(fields["address"]),
        zip=str(fields["zip"]),
        city=str(fields["city"]),
        kecamatan_id=int(str(fields["kecamatanId"])),
        kelurahan_id=int(str(fields["kelurahanId"])),
        coordinates=types.Spot(lat=coordinates["lat"], lng=coordinates["lng"]),
    )


PARCEL = types.PackageIn(
    weight=Decimal(str(PACKAGE["weight"])), length=20, width=15, height=10, item_name="Kopi Gayo", item_value=150000
)


PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n"
    b"trailer<</Root 1 0 R>>\n%%EOF\n"
)


class Shop:
    """Calls that follow each other; each leaves what the next one needs."""

    def __init__(self, sapa: Sapa) -> None:
        self.sapa = sapa

    def run(self) -> None:
        self.keep_customers()
        self.sell()
        self.settle()
        self.reward()
        self.ship()
        self.write()
        self.support()
        self.import_file()
        self.manage()
        self.clean_up()

    def keep_customers(self) -> None:
        customers = self.sapa.customers
        self.customer = customers.create(
            email="ayu@example.com",
            phone_number="0812-3456-789",
            first_name="Ayu",
            tags=["vip", "reseller"],
            addresses=[types.AddressIn(address1="Jl. Melawai 8", city="Jakarta")],
            additional_data={"card": "A-17", "visits": 12},
        )
        assert self.customer.phone_number == "+628123456789"
        assert self.customer.addresses[0].city == "Jakarta"
        assert self.customer.additional_data == {"card": "A-17", "visits": 12}
        changed = customers.update(self.customer.id, last_name="Lestari", first_name=None)
        assert (changed.first_name, changed.last_name, changed.tags) == (None, "Lestari", ["vip", "reseller"])
        upserted = customers.upsert("shop/1042 ☕", email="budi@example.com")
        assert upserted.external_id == "shop/1042 ☕"
        assert customers.upsert("shop/1042 ☕", first_name="Budi").id == upserted.id
        assert [one.id for one in customers.list(tags=["vip", "reseller"])] == [self.customer.id]
        assert customers.list(search="lestari").page().meta.total == 1
        assert {entry.source for entry in customers.timeline(self.customer.id, limit=1)}
        consent = customers.record_consent(self.customer.id, app="CRM", status="subscribe")
        assert [one.id for one in customers.list_consents(self.customer.id)] == [consent.id]
        assert customers.get(self.customer.id).last_name == "Lestari"

    def sell(self) -> None:
        product = self.sapa.products.create(
            name="Kopi Gayo", variants=[types.VariantIn(title="250 g", price=Decimal("85000.50"), sku="GAYO-250")]
        )
        assert product.variants[0].price == Decimal("85000.50")
        assert self.sapa.products.update(product.id, description="From Aceh").description == "From Aceh"
        self.order = self.sapa.orders.create(
            customer=types.OrderCustomerIn(email="ayu@example.com"),
            line_items=[types.LineItemIn(title="Kopi Gayo", price=Decimal("85000.50"), quantity=2)],
        )
        assert self.order.total == Decimal("170001.00")
        assert isinstance(self.order.total, Decimal)
        assert datetime.now(UTC) - self.order.created_at < timedelta(minutes=5)
        assert self.sapa.orders.update(self.order.id, notes="Gift").notes == "Gift"
        assert [one.id for one in self.sapa.orders.list(status="active", customer_id=self.customer.id)] == [
            self.order.id
        ]
        self.product = product

    def settle(self) -> None:
        orders = self.sapa.orders
        payment = orders.record_payment(self.order.id, amount=Decimal("170001.00"), method="transfer", reference="T-1")
        assert payment.amount == self.order.total
        assert orders.get(self.order.id).financial_status == "paid"
        assert orders.fulfill(self.order.id).line_items
        assert orders.refund(self.order.id, amount=Decimal("0.50"), reason="Rounding").amount == Decimal("0.50")
        assert {entry.action for entry in orders.list_history(self.order.id, limit=1)}
        line = types.LineItemIn(title="Kopi Toraja", price=90000, quantity=1)
        draft = self.sapa.draft_orders.create(line_items=[line], customer_id=self.customer.id)
        assert [one.id for one in self.sapa.draft_orders.list()] == [draft.id]
        assert self.sapa.draft_orders.complete(draft.id).total == 90000
        settlement = self.sapa.cash_on_delivery.create_settlement(
            provider="aggregator_carrier",
            reference="S-1",
            remitted_at=datetime.now(UTC),
            lines=[types.SettlementLineIn(parcel="JNE-unknown", amount=Decimal(1000))],
        )
        (difference,) = self.sapa.cash_on_delivery.list_differences(settlement_id=settlement.id)
        assert difference.kind == "unknown_parcel"
        assert self.sapa.cash_on_delivery.resolve_difference(difference.id, note="Not ours").id == difference.id

    def reward(self) -> None:
        loyalty, customer_id = self.sapa.loyalty, self.customer.id
        loyalty.update_settings(enabled=True)
        tier = types.Tier(currency_amount=Decimal(1000), points=1)
        assert loyalty.replace_point_conversion(tiers=[tier]).tiers == loyalty.get_point_conversion().tiers
        for points in (100, 20, 30):
            loyalty.adjust_points(customer_id, direction="add", points=points, idempotency_key=f"bonus-{points}")
        loyalty.adjust_points(customer_id, direction="add", points=100, idempotency_key="bonus-100")
        assert loyalty.get_wallet(customer_id).available_points == "150"
        assert [entry.points_delta for entry in loyalty.list_history(customer_id, limit=1)] == ["30", "20", "100"]
        held = loyalty.reserve_points(customer_id, points=10)
        assert loyalty.release_reservation(held.id).status == "released"
        assert loyalty.commit_reservation(loyalty.reserve_points(customer_id, points=10).id).status == "committed"
        reward = self.sapa.rewards.create(reward_name="Kopi", cost_to_redeem=50, discount_type="free_shipping")
        redeemed = self.sapa.rewards.redeem(customer_id, reward_option_id=reward.id, reward_name="Kopi", points_cost=50)
        assert self.sapa.redemptions.commit(redeemed.redemption.id).status == "committed"
        assert [one.id for one in self.sapa.redemptions.list(customer_id, limit=1)] == [redeemed.redemption.id]
        assert self.sapa.redemptions.summary(customer_id)
        assert [one.customer_id for one in self.sapa.rewards.list_redeemers(reward.id)] == [customer_id]
        assert loyalty.check_ledger().drifting_wallets == 0

    def ship(self) -> None:
        shipping = self.sapa.shipping
        assert {one.provider for one in shipping.list_providers()} >= {"aggregator_carrier"}
        provinces = shipping.list_provinces()
        assert shipping.list_cities(province_id=str(provinces[0].id))
        store = self.sapa.store_locations.create(
            name="Gudang", phone="081234567890", address="Jl. Menteng Raya No. 21", city="Jakarta Pusat", zip="10310"
        )
        assert self.sapa.store_locations.update(store.id, name="Gudang 2").name == "Gudang 2"
        shipment = self.sapa.shipments.create(
            provider="aggregator_carrier",
            order_id=self.order.id,
            service_name="JNE Reguler",
            fee=18000,
            sender=party(SENDER),
            delivery=party(DELIVERY),
            package=PARCEL,
            auto_book=True,
        )
        assert shipment.fee == 18000
        assert shipment.package is not None
        assert shipment.package.weight == Decimal("1.5")
        self.sapa.shipments.advance_in_sandbox(shipment.id)
        assert self.sapa.shipments.track(shipment.id).provider == "aggregator_carrier"
        assert [one.id for one in self.sapa.shipments.list(order_id=self.order.id)] == [shipment.id]
        draft = self.sapa.shipments.create(
            provider="custom", service_name="Rider", fee=Decimal(10000), sender=party(SENDER), delivery=party(DELIVERY)
        )
        assert self.sapa.shipments.update(draft.id, name="By hand").name == "By hand"
        assert self.sapa.shipments.get_label(draft.id).content.startswith(b"%PDF")
        batch = self.sapa.shipments.create_label_batch(ids=[draft.id])
        assert wait_for(lambda: self.sapa.shipments.get_label_batch(batch.id)).content.startswith(b"%PDF")
        assert self.sapa.shipments.cancel(draft.id, reason="Picked up").shipping_status == "cancelled"
        self.sapa.store_locations.delete(store.id)

    def write(self) -> None:
        messages = self.sapa.messages
        sent = messages.send(to="+12015550100", message="Halo", sources=["MSGAPP_CLOUD", "MAIL"])
        buttons = types.ButtonsIn(body="Cocok?", buttons=[types.ReplyButtonIn(id="yes", title="Ya")])
        messages.send_interactive(to="+12015550100", interactive=buttons, sources="MSGAPP_CLOUD")
        template = self.sapa.templates.create(
            name="hello", language="id", category="UTILITY", body="Halo {{1}}, apa kabar?"
        )
        assert self.sapa.templates.preview(template.id, params=["Ayu"])
        assert sent.message_id2 is not None
        status = wait_for(lambda: self._find_status(sent.message_id2, "read"))
        assert status == "read"
        assert messages.get_media(sent.message_id2)
        records = list(messages.list_requests(limit=1))
        assert {one.endpoint_type for one in records} == {"send_message", "send_message_interactive"}
        file = self.sapa.attachments.upload(PDF, filename="nota.pdf", content_type="application/octet-stream")
        assert messages.send_media(to="+12015550100", attachment_id=file.id, sources="MSGAPP_CLOUD").message_id2
        assert self.sapa.sandbox.list_outbox().page().meta.total >= 2
        assert self.sapa.costs.get(group_by="channel").totals is not None
        assert self.sapa.costs.export().content_type.startswith("text/csv")
        assert self.sapa.channel_events.list().page().meta.page == 1

    def _find_status(self, id: str, status: str) -> str | None:
        found = self.sapa.messages.get(id)
        return found.status if found.status == status else None

    def support(self) -> None:
        sender = f"{uuid4().hex}@example.com"
        self.sapa.sandbox.receive(source="MAIL", from_=sender, text="Apakah masih ada?")
        agent = self.sapa.agents.create(name="Sari")
        ticket = wait_for(lambda: next((one for one in self.sapa.tickets.list() if one.client_number == sender), None))
        assert self.sapa.tickets.assign(ticket.id, agent_id=agent.id).agent_id == agent.id
        self.sapa.tickets.reply(ticket.id, agent_id=agent.id, body="Masih ada.")
        self.sapa.tickets.add_note(ticket.id, agent_id=agent.id, body="Pelanggan VIP")
        assert [note.body for note in self.sapa.tickets.get(ticket.id).notes] == ["Pelanggan VIP"]
        self._work_in_inbox(ticket.id, agent.id)
        assert self.sapa.tickets.resolve(ticket.id).status == "resolved"
        now = datetime.now(UTC)
        report = self.sapa.analytics.agents(start_at=now - timedelta(days=1), end_at=now + timedelta(days=1))
        assert agent.id in [record.agent_id for record in report.records]
        assert list(self.sapa.analytics.list_agent_samples(agent.id, metric="response")) is not None
        assert self.sapa.support.get_settings()

    def _work_in_inbox(self, ticket_id: str, agent_id: int) -> None:
        label = self.sapa.labels.create(name=uuid4().hex)
        team = self.sapa.teams.create(name=uuid4().hex, agent_ids=[agent_id])
        filed = self.sapa.tickets.update(ticket_id, label_ids=[label.id], team_id=team.id, priority="high")
        assert (filed.label_ids, filed.team_id, filed.priority) == ([label.id], team.id, "high")
        saved = self.sapa.saved_replies.create(shortcut=uuid4().hex, text="Halo, saya {agen}.")
        assert self.sapa.saved_replies.fill(ticket_id, saved.id, agent_id=agent_id).text == "Halo, saya Sari."
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        later = self.sapa.scheduled_replies.create(ticket_id, agent_id=agent_id, body="Sudah tiba?", send_at=tomorrow)
        assert [one.body for one in self.sapa.scheduled_replies.list(ticket_id)] == ["Sudah tiba?"]
        self.sapa.scheduled_replies.delete(later.id)
        draft = self.sapa.reply_drafts.set(ticket_id, agent_id, body="Sudah, Kak.")
        assert self.sapa.reply_drafts.list(ticket_id) == [draft]
        self.sapa.reply_drafts.delete(ticket_id, agent_id)
        colleague = self.sapa.agents.create(name=f"Budi {uuid4().hex}")
        self.sapa.tickets.add_note(ticket_id, agent_id=agent_id, body=f"@{colleague.name}, tolong.")
        assert [one.ticket_id for one in self.sapa.agents.list_mentions(colleague.id)] == [ticket_id]
        self.sapa.agents.delete_mention(colleague.id, ticket_id)
        view = self.sapa.views.create(name=uuid4().hex, filters=types.ViewFiltersIn(priority="high"))
        assert view.id in [one.id for one in self.sapa.views.list(agent_id=agent_id)]
        assert self.sapa.business_hours.get().time_zone == "Asia/Jakarta"
        policy = self.sapa.sla_policies.create(name=uuid4().hex, resolution_minutes=60)
        self.sapa.sla_policies.delete(policy.id)
        macro = self.sapa.macros.create(name=uuid4().hex, reply="Halo, saya {agen}.")
        assert self.sapa.macros.apply(ticket_id, macro.id, agent_id=agent_id).ticket.id == ticket_id
        assert list(self.sapa.ratings.list(ticket_id=ticket_id)) == []

    def import_file(self) -> None:
        content = b"email,firstName\ncitra@example.com,Citra\nnot an address,Dewi\n"
        upload = self.sapa.imports.create(content, resource="customers", content_type="text/csv")
        done = wait_for(lambda: self._find_finished(upload.id))
        assert (done.created, done.failed) == (1, 1)
        assert [problem.field for problem in self.sapa.imports.list_errors(upload.id)] == ["email"]

    def _find_finished(self, id: str) -> types.Import | None:
        found = self.sapa.imports.get(id)
        return found if found.finished_at else None

    def manage(self) -> None:
        assert self.sapa.company.update(time_zone="Asia/Makassar") == self.sapa.company.get()
        assert {one.source for one in self.sapa.channels.list()} >= {
            one.source for one in self.sapa.channels.list_statuses()
        }
        assert self.sapa.carriers.get("aggregator_carrier") in self.sapa.carriers.list()
        webhooks = self.sapa.webhooks
        endpoint = webhooks.create_endpoint(url="https://hooks.example.com/sapa", events=["customer.created"])
        assert endpoint.secret is not None
        assert webhooks.pause_endpoint(endpoint.id).status == "paused"
        assert list(webhooks.list_deliveries(endpoint_id=endpoint.id)) == []
        webhooks.delete_endpoint(endpoint.id)
        key = self.sapa.api_keys.create(name="reports", scopes=["orders:READ"], allows_mcp=False)
        assert key.key is not None
        assert not self.sapa.api_keys.get(key.id).allows_mcp
        self.sapa.api_keys.revoke(key.id)
        wait_for(lambda: next(iter(self.sapa.api_calls.list(route="/customer/v1/company", limit=1)), None))

    def clean_up(self) -> None:
        self.sapa.products.delete(self.product.id)
        with pytest.raises(errors.NotFound):
            self.sapa.products.get(self.product.id)


async def test_a_day_of_a_shop(sapa: Sapa) -> None:
    Shop(sapa).run()


async def test_pages_are_read_one_after_the_other(sapa: Sapa) -> None:
    made = [sapa.customers.create(email=f"c{n}@example.com").id for n in range(7)]
    found = sapa.customers.list(limit=3, sort="createdAt:asc")
    assert [one.id for one in found] == made
    assert [[one.id for one in page.data] for page in found.pages()] == [made[:3], made[3:6], made[6:]]
    assert [one.id for one in sapa.customers.list(limit=3, page=2, sort="createdAt:asc")] == made[3:]
    for name in ("A", "B", "C"):
        sapa.customers.update(made[0], first_name=name)
    whole = sapa.customers.timeline(made[0], limit=100).page()
    assert whole.meta.total >= 3
    assert [one.id for one in sapa.customers.timeline(made[0], limit=2)] == [one.id for one in whole.data]
    after = whole.data[2:]
    assert [one.id for one in sapa.customers.timeline(made[0], limit=2, after=_cursor(sapa, made[0]))] == [
        one.id for one in after
    ]


def _cursor(sapa: Sapa, customer_id: str) -> str:
    cursor = sapa.customers.timeline(customer_id, limit=2).page().meta.end_cursor
    assert cursor is not None
    return cursor


async def test_the_same_in_asyncio(async_sapa: AsyncSapa) -> None:
    sapa = async_sapa
    made = [(await sapa.customers.create(email=f"c{n}@example.com")).id for n in range(5)]
    assert [one.id async for one in sapa.customers.list(limit=2, sort="createdAt:asc")] == made
    assert [len(page.data) async for page in sapa.customers.list(limit=2).pages()] == [2, 2, 1]
    for points in (1, 2, 3):
        await sapa.loyalty.adjust_points(made[0], direction="add", points=points)
    history = [entry.points_delta async for entry in sapa.loyalty.list_history(made[0], limit=1)]
    assert history == ["3", "2", "1"]
    assert len([entry async for entry in sapa.customers.timeline(made[0], limit=1)]) >= 4
    await sapa.customers.delete(made[0])
    with pytest.raises(errors.NotFound):
        await sapa.customers.get(made[0])


def test_the_scenario_uses_every_resource() -> None:
    resources = {routes.resource for routes in ROUTES} | {"redemptions"}
    source = Path(__file__).read_text()
    assert {name for name in resources if f".{name}" not in source} == set()
