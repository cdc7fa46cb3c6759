"""Random carrier events, duplicated, late and in any order: the status is always one that the table allows."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sapa.db.pool import Database, open_database
from sapa.shipping.carriers.interface import CarrierEvent, Driver
from sapa.shipping.shipments import queries as shipments
from sapa.shipping.shipments.validation import build_draft
from sapa.shipping.states import CANCELLED, MOVES, STATUSES, is_allowed
from sapa.shipping.tracking import queries as tracking
from sapa.shipping.tracking.actions import apply_events
from sapa.shipping.tracking.status_changes import build_change
from sapa.values.company import Company
from tests import depth
from tests.conftest import TLS, Installation
from tests.factories import make_company, make_key
from tests.shipping.parcels import body_of

START = datetime(2026, 1, 1, tzinfo=UTC)
SHOP = Company(1, "test", "ID", "IDR")
PROVIDERS = st.sampled_from(["aggregator_carrier", "instant_carrier", "ev_courier"])
EVENTS = st.builds(
    CarrierEvent,
    dedupe_key=st.integers(0, 40).map(str),
    occurred_at=st.integers(0, 12).map(lambda minutes: START + timedelta(minutes=minutes)),
    status=st.sampled_from([*STATUSES, None, "a word nobody knows"]),
    text=st.just("said"),
    awb=st.sampled_from([None, "AWB-1"]),
    driver=st.sampled_from([None, Driver("Eko", "+6281", None, "B 1"), Driver("Sri", None, None, None)]),
    is_reassignment=st.booleans(),
    reason=st.sampled_from([None, "Nobody at home"]),
)


@given(status=st.sampled_from(STATUSES), provider=PROVIDERS, events=st.lists(EVENTS, max_size=30))
@settings(max_examples=depth.examples(400), deadline=None)
def test_whatever_a_carrier_says_the_state_is_allowed(status: str, provider: str, events: list[CarrierEvent]) -> None:
    stored = msgspec.structs.replace(build_draft(SHOP, provider), shipping_status=status, reference="SP1")
    for event in events:
        change = build_change(stored, event, "carrier_webhook")
        was, now = stored.shipping_status, change.shipment.shipping_status
        assert was == now or is_allowed(was, now, "reassignment" if event.is_reassignment else "carrier")
        assert change.is_applied or was == now
        if change.is_applied:
            assert (change.shipment.event_timestamp or START) >= (stored.event_timestamp or START)
        if was == "delivered":
            assert now in {"delivered", "returning"}
            if now == "returning":
                assert stored.event_timestamp is None or stored.event_timestamp < (
                    change.shipment.event_timestamp or START
                )
        assert stored.awb is None or change.shipment.awb == stored.awb, "a number is never taken back"
        stored = change.shipment


def test_every_allowed_move_of_a_carrier_can_be_made() -> None:
    for status, row in MOVES.items():
        for to in row.get("carrier", frozenset()) - CANCELLED:
            stored = msgspec.structs.replace(build_draft(SHOP, "instant_carrier"), shipping_status=status)
            event = CarrierEvent("1", START, to, "said")
            assert build_change(stored, event, "carrier_webhook").shipment.shipping_status == to, (status, to)


class Road(RuleBasedStateMachine):
    """One shipment in the database, fed with duplicated, late and unordered events."""

    loop: asyncio.AbstractEventLoop
    database: Database
    api: httpx.AsyncClient
    company: Company
    events: dict[str, CarrierEvent]
    history: list[str]

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    @initialize(provider=PROVIDERS)
    def begin(self, provider: str) -> None:
        self.events, self.history = {}, []
        response = self.run(self.api.post("/shipping/shipments", json=body_of(provider)))
        self.id = response.json()["data"]["id"]
        self.run(self._confirm())

    async def _confirm(self) -> None:
        async with self.database.transaction() as tx:
            stored = await shipments.lock_shipment(tx, self.company.id, self.id)
            booked = msgspec.structs.replace(stored, shipping_status="confirmed", reference=f"SP{self.id[-16:]}")
            self.stored = await shipments.save_shipment(tx, self.company.id, booked, True)

    @rule(event=EVENTS)
    def happen(self, event: CarrierEvent) -> None:
        self._tell(self.events.setdefault(event.dedupe_key, event))

    @precondition(lambda self: self.events)
    @rule(data=st.data())
    def happen_again(self, data: st.DataObject) -> None:
        before = self.stored
        self._tell(data.draw(st.sampled_from(list(self.events.values()))))
        assert self.stored == before, "what was said before changes nothing"

    def _tell(self, event: CarrierEvent) -> None:
        before = self.stored
        self.run(self._apply(event))
        was, now = before.shipping_status, self.stored.shipping_status
        assert was == now or is_allowed(was, now, "reassignment" if event.is_reassignment else "carrier")
        if was == "delivered":
            assert now in {"delivered", "returning"}
        self.history.append(now)

    async def _apply(self, event: CarrierEvent) -> None:
        async with self.database.transaction() as tx:
            self.stored = await apply_events(tx, self.company, self.stored, [event], "carrier_webhook")

    @invariant()
    def what_is_stored_is_what_is_answered(self) -> None:
        if not hasattr(self, "kept"):
            return
        shown = self.run(self.api.get(f"/shipping/shipments/{self.id}")).json()["data"]
        assert shown["shippingStatus"] == self.stored.shipping_status

    def teardown(self) -> None:
        if hasattr(self, "kept"):
            self.run(self._check_history())

    async def _check_history(self) -> None:
        async with self.database.connection() as db:
            events = await tracking.list_events(db, self.company.id, self.id)
            latest = await db.fetchval(
                "SELECT convert_from(body, 'UTF8') FROM events WHERE company_id = $1 AND resource_id = $2"
                " ORDER BY number DESC LIMIT 1", self.company.id, self.id,
            )  # fmt: skip
        assert len(events) == len(
            {event.dedupe_key for event in self.events.values() if event.dedupe_key in self.events}
        )
        if self.history and self.history[-1] != "confirmed":
            assert msgspec.json.decode(latest)["shippingStatus"] == self.stored.shipping_status


def test_random_events_over_the_database(installation: Installation) -> None:
    """On a thread of its own, because Hypothesis calls rules without an event loop."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_run, installation).result()


def _run(installation: Installation) -> None:
    loop = asyncio.new_event_loop()

    async def open_all() -> tuple[Any, Database, Company, httpx.AsyncClient]:
        context = open_database(installation.server.app_url, size=2)
        database = await context.__aenter__()
        created = await make_company(database)
        key = await make_key(database, created.test)
        client = httpx.AsyncClient(
            base_url=installation.customer_base, headers={"x-api-key": key.raw}, timeout=120, verify=TLS
        )
        return context, database, Company(created.test, "test", "ID", "IDR"), client

    context, Road.database, Road.company, Road.api = loop.run_until_complete(open_all())
    Road.loop = loop
    try:
        run_state_machine_as_test(
            Road,
            settings=settings(
                max_examples=depth.examples(12),
                stateful_step_count=20,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        loop.run_until_complete(Road.api.aclose())
        loop.run_until_complete(context.__aexit__(None, None, None))
        loop.close()
