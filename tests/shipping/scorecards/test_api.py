"""Scorecards over HTTP: each figure, and the parcels behind it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import msgspec
import pytest

from sapa.db.pool import Database
from sapa.shipping.carriers.interface import CarrierEvent
from sapa.shipping.estimates import parse_days
from sapa.shipping.scorecards import queries
from sapa.shipping.scorecards.types import FIGURES, ReportPeriod
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.tracking.actions import apply_events
from sapa.values.company import Company
from tests.shipping.parcels import DELIVERY, change, create, error_of

MORNING = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)
"""Ten o'clock in Jakarta."""


class Story(msgspec.Struct, frozen=True):
    """A parcel: the estimate, the city, and its events with the hours after the pickup."""

    service: str
    city: str | None
    estimate: str | None
    events: tuple[tuple[str, float], ...]


STORIES = [
    Story("JNE Reguler", "Bandung", "2-3 days", (("picked_up", 0), ("delivered", 50))),
    Story("JNE Reguler", "Bandung", "1-2 days", (("picked_up", 0), ("delivery_failed", 48), ("delivered", 74))),
    Story("JNE Reguler", "Bandung", "2-3 days", (("picked_up", 0), ("delivery_failed", 70), ("returned", 120))),
    Story("JNE Reguler", "Medan", None, (("picked_up", 0), ("delivered", 26))),
    Story("SiCepat Ekonomi", "Medan", "1 - 1 days", (("picked_up", 0), ("delivered", 13.9))),
    Story("SiCepat Ekonomi", "Medan", "1 - 1 days", (("picked_up", 0), ("delivered", 38.1))),
    Story("SiCepat Ekonomi", "Medan", "1 - 1 days", (("picked_up", 0), ("lost", 90))),
    Story("SiCepat Ekonomi", "Medan", "1 - 1 days", (("confirmed", 0),)),
    Story("JNE Reguler", "Medan", "2-3 days", (("picked_up", 0), ("in_transit", 5))),
]


async def tell(api: httpx.AsyncClient, database: Database, company: Company, story: Story) -> str:
    """A shipment that the events happened to."""
    receiver = {**DELIVERY, "city": story.city}
    created = await create(
        api, "aggregator_carrier", serviceName=story.service, delivery=receiver, estimate=story.estimate
    )
    async with database.transaction() as tx:
        draft = await shipments.lock_shipment(tx, company.id, created["id"])
        booked = msgspec.structs.replace(
            draft, shipping_status="confirmed", reference=created["id"][-18:], adapter="kiriminaja"
        )
        stored = await shipments.store(tx, company, draft, booked)
    for status, hours in story.events:
        event = CarrierEvent(f"{status}/{hours}", MORNING + timedelta(hours=hours), status, status)
        async with database.transaction() as tx:
            stored = await apply_events(tx, company, stored, [event], "carrier_webhook")
    return str(created["id"])


@pytest.fixture
async def told(sandbox: httpx.AsyncClient, database: Database, tester: Company) -> list[str]:
    return [await tell(sandbox, database, tester, story) for story in STORIES]


async def read(api: httpx.AsyncClient, **params: str) -> list[dict[str, Any]]:
    response = await api.get("/shipping/scorecards", params=params)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["data"]["scorecards"]
    return found


async def test_the_figures_of_carriers_services_and_areas(sandbox: httpx.AsyncClient, told: list[str]) -> None:
    (carrier,) = await read(sandbox)
    assert carrier == {
        "provider": "aggregator_carrier", "carrier": "kiriminaja", "service": None, "area": None,
        "parcels": 8, "delivered": 5, "timed": 4, "late": 2, "onTimeRate": 50,
        "quotedDays": 1.8, "actualDays": 1.8, "slowestDays": 3,
        "failedAttempts": 2, "failedAttemptRate": 25, "returned": 1, "returnRate": 14.3, "lost": 1,
    }  # fmt: skip
    services = {one["service"]: one for one in await read(sandbox, groupBy="service")}
    assert {name: one["parcels"] for name, one in services.items()} == {"JNE Reguler": 5, "SiCepat Ekonomi": 3}
    assert (services["SiCepat Ekonomi"]["late"], services["SiCepat Ekonomi"]["returnRate"]) == (1, 0)
    areas = {one["area"]: one["parcels"] for one in await read(sandbox, groupBy="area")}
    assert areas == {"Bandung": 3, "Medan": 5}
    every = {(one["service"], one["area"]): one["parcels"] for one in await read(sandbox, groupBy="all")}
    assert every == {("JNE Reguler", "Bandung"): 3, ("SiCepat Ekonomi", "Medan"): 3, ("JNE Reguler", "Medan"): 2}


async def test_every_figure_leads_to_its_parcels(sandbox: httpx.AsyncClient, told: list[str]) -> None:
    camel = {"failed_attempts": "failedAttempts"}
    for card in await read(sandbox, groupBy="all"):
        for figure in FIGURES:
            params = {name: card[name] for name in ("carrier", "service", "area")} | {"figure": figure}
            page = (await sandbox.get("/shipping/scorecards/parcels", params=params)).json()
            assert page["meta"]["total"] == len(page["data"]) == card[camel.get(figure, figure)], (figure, card)
    late = (await sandbox.get("/shipping/scorecards/parcels", params={"figure": "late"})).json()["data"]
    assert sorted((one["quotedDays"], one["actualDays"]) for one in late) == [(1, 2), (2, 3)]
    assert {one["id"] for one in late} == {told[1], told[5]}
    failed = (await sandbox.get("/shipping/scorecards/parcels", params={"figure": "failed_attempts"})).json()["data"]
    assert {one["id"]: one["failedAttempts"] for one in failed} == {told[1]: 1, told[2]: 1}


async def test_what_customers_send_back_is_no_delivery(
    sandbox: httpx.AsyncClient, database: Database, told: list[str]
) -> None:
    before = await read(sandbox, groupBy="all")
    back = await sandbox.post(f"/shipping/shipments/{told[0]}/return")
    assert back.status_code == 201, back.text
    async with database.connection() as db:
        await db.execute("UPDATE shipments SET picked_up_at = now() WHERE id = $1", back.json()["data"]["id"])
    assert await read(sandbox, groupBy="all") == before


async def test_days_are_those_of_the_companys_time_zone(sandbox: httpx.AsyncClient, told: list[str]) -> None:
    """Picked up at three o'clock in UTC and delivered 13.9 hours later: the same day in Jakarta."""

    async def count_days() -> int:
        params = {"figure": "delivered", "service": "SiCepat Ekonomi"}
        page = (await sandbox.get("/shipping/scorecards/parcels", params=params)).json()
        return int(next(one["actualDays"] for one in page["data"] if one["id"] == told[4]))

    assert await count_days() == 0
    changed = await sandbox.put("/company", json={"timeZone": "Asia/Jayapura"})
    assert changed.status_code == 200, changed.text
    assert await count_days() == 1
    (card,) = [one for one in await read(sandbox, groupBy="service") if one["service"] == "SiCepat Ekonomi"]
    assert (card["actualDays"], card["late"]) == (1.5, 1)


async def test_rows_beyond_the_most_are_left_out_and_it_says_so(
    sandbox: httpx.AsyncClient,
    database: Database,
    tester: Company,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = (await sandbox.get("/shipping/scorecards", params={"groupBy": "all"})).json()["data"]
    assert (len(report["scorecards"]), report["truncated"]) == (3, False)
    monkeypatch.setattr(queries, "MAX_ROWS", 1)
    period = ReportPeriod(datetime.now(UTC) - timedelta(days=1), datetime.now(UTC) + timedelta(days=1))
    async with database.connection() as db:
        assert len(await queries.list_scorecards(db, tester.id, period, "all")) == 2, "one more than it may have"


async def test_areas_that_are_given_by_id_are_named(
    sandbox: httpx.AsyncClient, database: Database, tester: Company
) -> None:
    id = await tell(sandbox, database, tester, Story("JNE Reguler", None, None, (("picked_up", 0),)))
    assert [(one["area"], one["parcels"]) for one in await read(sandbox, groupBy="area")] == [
        ("Kota Jakarta Selatan", 1)
    ]
    params = {"figure": "parcels", "area": "Kota Jakarta Selatan"}
    page = (await sandbox.get("/shipping/scorecards/parcels", params=params)).json()
    assert [one["id"] for one in page["data"]] == [id]
    moved = await create(sandbox, "aggregator_carrier", delivery={**DELIVERY, "city": None})
    bandung = {"kecamatanId": 327302, "kelurahanId": 3273021001}
    for patch in ({"delivery": bandung}, {"name": "Parcel of Ayu"}):
        response = await change(sandbox, moved["id"], **patch)
        assert response.status_code == 200, response.text
    async with database.connection() as db:
        assert (await shipments.get_stored(db, tester.id, moved["id"])).area == "Kota Bandung"


async def test_attempts_that_are_reported_twice_count_once(
    sandbox: httpx.AsyncClient, database: Database, tester: Company
) -> None:
    story = Story(
        "JNE Reguler", "Bandung", None,
        (("picked_up", 0), ("delivery_failed", 20), ("delivery_failed", 20.5), ("delivery_failed", 44), ("on_hold", 45),
         ("delivery_failed", 68)),
    )  # fmt: skip
    id = await tell(sandbox, database, tester, story)
    found = (await sandbox.get("/shipping/scorecards/parcels", params={"figure": "failed_attempts"})).json()["data"]
    assert [(one["id"], one["failedAttempts"]) for one in found] == [(id, 3)]


async def test_the_period(sandbox: httpx.AsyncClient, told: list[str]) -> None:
    later, latest = ((datetime.now(UTC) + timedelta(days=days)).isoformat() for days in (1, 2))
    assert await read(sandbox, createdFrom=later, createdTo=latest) == []
    much = await sandbox.get(
        "/shipping/scorecards", params={"createdFrom": "2020-01-01T00:00:00Z", "createdTo": "2026-01-01T00:00:00Z"}
    )
    assert error_of(much) == (400, "VALIDATION_ERROR")
    for period in ({"createdTo": "0001-01-01T00:00:00Z"}, {"createdFrom": "9999-12-31T23:59:59Z"}):
        assert error_of(await sandbox.get("/shipping/scorecards", params=period)) == (400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    ("estimate", "days"),
    [
        ("2-3 days", "3"), ("1 - 2 days", "2"), ("4 - 6 hours", "0.25"), ("1-2 jam", "0.08"), ("90 menit", "0.06"),
        ("3 days minimum", "3"), ("1,5 hari", "1.5"), ("5", "5"), ("", None), ("besok", None), ("12345 days", None),
    ],
)  # fmt: skip
def test_the_days_of_an_estimate(estimate: str, days: str | None) -> None:
    assert parse_days(estimate) == (None if days is None else Decimal(days))
