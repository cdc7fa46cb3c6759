"""Home: who waits longest, in whose eyes, and when a backup is too old."""

import re
from html import unescape

import httpx
import pytest

from sapa.backups.types import BackupState
from sapa.db.pool import Database
from sapa.people.types import Role
from tests.conftest import Installation, connect
from tests.console.people import make_person, open_browser, read_token
from tests.console.seats import Seat, read
from tests.factories import Environments, make_key, make_order, make_product
from tests.http.wire import eventually
from tests.shipping import parcels
from tests.support.ticket_steps import Desk


async def test_home_names_who_waits_longest_and_agents_see_their_own(
    installation: Installation, database: Database, company: Environments, desk: Desk, seat: Seat
) -> None:
    """The menu counts what nobody has taken; home also what an agent keeps waiting."""
    other = await desk.create_agent("Budi")
    first = await desk.receive("Masih ada?", "+6281290000001")
    await desk.act(first, "assign", agentId=other)
    rejected = {"name": "sim_rejected_promo", "language": "id", "category": "MARKETING", "body": "Halo, promo baru."}
    await desk.post("/templates", 201, **rejected)
    async with open_browser(installation, await make_person(database, company)) as owner:
        shown = read((await owner.get("/test")).text)
        assert "1 conversation waits for an answer Sandbox customer 0 min" in shown
        assert "1 template was rejected sim_rejected_promo" in shown
    assert "Nothing needs you right now" in read((await seat.browser.get("/test")).text)
    await desk.receive("Halo", "+6281290000002")
    assert "1 conversation waits for an answer" in read((await seat.browser.get("/test")).text)


async def test_home_compares_today_and_says_what_runs_out(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    """Yesterday counts until this time of the day; the curve has every day."""
    await make_product(api, name="Gayo", variants=[{"title": "M", "price": 1, "inventoryQuantity": 2}])
    for ago, price in (
        ("1 minute", 30_000), ("1 day 1 minute", 20_000), ("23 hours 50 minutes", 70_000), ("3 days", 50_000)
    ):  # fmt: skip
        order = await make_order(api, lineItems=[{"title": "Kopi", "price": price, "quantity": 1}])
        async with database.connection() as db:
            await db.execute(
                f"UPDATE orders SET created_at = now() - interval '{ago}' WHERE company_id = $1 AND id = $2",
                company.live,
                order["id"],
            )
    async with open_browser(installation, await make_person(database, company)) as owner:
        shown = (await owner.get("/live")).text
        net, _ = re.findall(r'<a href="/console(/live/orders[^"]+)">yesterday by ', shown)
        until_now = read((await owner.get(unescape(net))).text)
    assert "1 product runs out of stock Gayo 2" in read(shown)
    assert re.search(r"Rp\s30,000 ▲ 50% yesterday by \d\d:\d\d: Rp\s20,000", read(shown)), "not of the whole day"
    assert "Rp 20,000" in until_now
    assert "Rp 70,000" not in until_now
    curves = re.findall(r"The last 14 days: ([^\"]+)", shown)
    assert [len(curve.split(", ")) for curve in curves] == [14, 14]
    assert sum(int(count) for count in curves[1].split(", ")) == 4


async def test_home_says_what_failed_and_what_is_left_to_set_up(
    installation: Installation, database: Database, company: Environments, desk: Desk
) -> None:
    async with open_browser(installation, await make_person(database, company)) as owner:
        new = read((await owner.get("/live")).text)
        assert "Nothing needs you right now Set up your shop 0 of 4" in new
        async with connect(installation, (await make_key(database, company.live)).raw) as api:
            await make_product(api)
        await make_person(database, company, Role.AGENT)
        assert "Set up your shop 2 of 4" in read((await owner.get("/live")).text)
        async with connect(installation, (await make_key(database, company.test)).raw) as sandbox:
            await parcels.create(sandbox, "aggregator_carrier", sim="booking_rejected", autoBook=True)
        await desk.post("/sandbox/channel-status", source="MSGAPP_CLOUD", warning="ACCOUNT_VIOLATION")

        async def is_shown() -> bool:
            shown = read((await owner.get("/test")).text)
            return "1 parcel needs you" in shown and "WhatsApp warns you" in shown

        await eventually(is_shown)
        warned = read((await owner.get("/test/channels/MSGAPP_CLOUD")).text)
        assert "The channel's rules were broken warning" in warned
        async with database.connection() as db:
            older = "UPDATE companies SET created_at = now() - interval '8 days' WHERE company_id = $1"
            await db.execute(older, company.live)
        assert "Set up your shop" not in read((await owner.get("/live")).text)


async def test_the_first_steps_are_those_that_the_reader_can_do(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with open_browser(installation, await make_person(database, company, Role.DEVELOPER)) as developer:
        steps = (await developer.get("/live")).text.partition("Set up your shop")[2].partition("</section>")[0]
        form = {"token": await read_token(developer)}
        assert (await developer.post("/live/first-steps/hide", data=form)).status_code == 303
        hidden = (await developer.get("/live")).text
        assert ("The first steps are hidden" in hidden, "Set up your shop" in hidden) == (True, False)
    assert (steps.count("<li"), "0 of 3" in steps, "Invite your team" in steps) == (3, True, False)


@pytest.mark.parametrize(("hours", "is_late"), [(None, True), (1, False), (47, False), (49, True)])
def test_a_backup_is_late_after_two_rounds(hours: int | None, is_late: bool) -> None:
    age = None if hours is None else hours * 3600.0
    assert BackupState(None, None, age, None).is_late(every_hours=24) is is_late
