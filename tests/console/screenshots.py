"""The pictures of docs/screenshots: `.venv/bin/python -m tests.console.screenshots` makes them anew.

A fresh installation with the demo's shop and a few days of support, looked at with a real browser. It takes a minute.
"""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from msgspec import Struct
from PIL import Image
from playwright.async_api import Browser

from sapa.access import actions as access
from sapa.console.routes import COOKIE
from sapa.db.pool import Database, open_database
from sapa.demo import shop
from sapa.people import actions as people
from sapa.values.company import Company
from tests.browsers import launch, new_context
from tests.conftest import Installation, connect, start_installation, stop_installation
from tests.console.filled import fill_shop
from tests.console.people import PASSWORD
from tests.factories import make_key
from tests.messaging.conftest import connect_messaging
from tests.shipping import parcels
from tests.support.ticket_steps import Desk
from tests.webhooks.station import answer_with, open_station

FOLDER = Path(__file__).parents[2] / "docs" / "screenshots"
COLOURS = 96
NAME, OWNER = "Kopi Nusantara", people.Newcomer("sari@kopi.example", "Sari Dewi")

# A month of messages: most are read, some answered, a few failed.
MESSAGES = """
    INSERT INTO messages (company_id, id, direction, source, connection_id, identity_kind, identity, client_number,
                          connected_number, type, body, feature_source, status, created_at, accepted_at, sent_at,
                          delivered_at, read_at, replied_at, failed_at)
    SELECT $1, gen_random_uuid(), 'out', 'MSGAPP_CLOUD', 'none', 'phone', number, number, '+628110000000', 'text',
           'Halo!', 'API', CASE WHEN lost THEN 'failed' ELSE 'read' END, at, at, CASE WHEN NOT lost THEN at END,
           CASE WHEN NOT lost AND n % 17 > 0 THEN at END, CASE WHEN NOT lost AND n % 4 > 0 THEN at END,
           CASE WHEN NOT lost AND n % 6 = 1 THEN at END, CASE WHEN lost THEN at END
      FROM (SELECT n, '+62812' || n AS number, n % 41 = 0 AS lost,
                   date_trunc('day', now()) - interval '29 days' + n * interval '29.4 days' / 1400
                   + sin(n / 60.0) * interval '20 hours' AS at
              FROM generate_series(1, 1400) AS n) AS numbered
     WHERE at < now()"""

NAME_KEY = "UPDATE api_keys SET name = $3, rate_limit = 600 WHERE company_id = $1 AND name = $2"

TALKS = (
    ("+628123456702", "Apakah kopi Toraja 1 kg masih ada?", "Masih ada, kak. Mau dipesankan?", "human", 240),
    ("+628123456703", "Alamat saya pindah, bisa diganti?", "Bisa, mohon kirim alamat barunya.", "human", 420),
    ("+628123456704", "Jam buka hari Minggu?", "Kami buka pukul 08.00–20.00.", "ai", 4),
    ("+628123456705", "Bisa bayar di tempat?", "Bisa, untuk Jabodetabek.", "ai", 6),
    ("budi@kantor.example", "Minta faktur untuk pesanan bulan lalu.", "", "", 900),
    ("+628123456706", "Kirim ke Bandung berapa hari?", "", "", 300),
)  # fmt: skip


class Shot(Struct, frozen=True):
    name: str
    path: str
    scheme: Literal["light", "dark"] = "light"
    width: int = 1280
    height: int | None = 800
    """None for the whole page."""


def list_shots(pages: dict[str, str]) -> list[Shot]:
    def one(kind: str) -> str:
        return pages[f"/{{environment}}/{kind}/{{id}}"]

    return [
        Shot("home", ""),
        Shot("overview", "/reports", height=None),
        Shot("overview-dark", "/reports", "dark", height=900),
        Shot("orders", "/orders"),
        Shot("orders-dark", "/orders?status=active&fulfillmentStatus=unfulfilled", "dark"),
        Shot("orders-phone", "/orders", width=360),
        Shot("order", one("orders")),
        Shot("customer", one("customers"), height=None),
        Shot("inbox", "/inbox?view=all", width=390, height=844),
        Shot("ticket", one("inbox"), width=1440, height=900),
        Shot("ticket-dark", one("inbox"), "dark", width=1440, height=900),
        Shot("ticket-phone", one("inbox"), "dark", width=390, height=844),
        Shot("shipment", one("shipments"), height=None),
        Shot("wallet", one("loyalty")),
        Shot("agents", "/reports/agents", height=None),
        Shot("keys", "/keys"),
        Shot("webhook", one("webhooks"), height=900),
        Shot("channels", "/channels"),
        Shot("settings", "/settings/company"),
    ]


async def main() -> None:
    with TemporaryDirectory() as folder:
        (data := Path(folder) / "data").mkdir()  # no copy of a database that a run of the tests has prepared
        installation = start_installation(data, SAPA_WEBHOOK_ALLOW_INSECURE="1")
        try:
            async with open_database(installation.server.app_url, size=5) as database:
                secret, pages = await fill(installation, database)
                async with launch() as browser:
                    for shot in list_shots(pages):
                        await take(browser, installation.address, secret, shot)
        finally:
            stop_installation(installation)


async def fill(installation: Installation, database: Database) -> tuple[str, dict[str, str]]:
    """The shop, with its owner's session."""
    company = await shop.fill(database, lambda what, done, of: None)
    async with database.transaction() as tx:
        await access.rename_company(tx, company.id, NAME)
        await tx.execute(MESSAGES, company.id)
        link = await people.make_setup_link(tx, company.id)
    secret = await people.use_link(database, link, PASSWORD, OWNER, people.Origin("127.0.0.1", "screenshots"))
    async with open_station() as station:
        station.answer = answer_with(200, 200, 500, 200)
        pages = await fill_shop(installation, database, company.id, station)
        async with database.transaction() as tx:
            await tx.execute(NAME_KEY, company.id, "test key", "Toko online")
            session = await people.find_session(tx, secret)
        assert session is not None
        await _work(installation, database, company, session.user_id)
    return secret, pages


async def _work(installation: Installation, database: Database, company: Company, user_id: int) -> None:
    """Parcels under way, and conversations with customers."""
    key = (await make_key(database, company.id)).raw
    async with connect(installation, key) as api, connect_messaging(installation, key) as messaging:
        for provider in ("custom", "parcel_carrier", "custom"):
            await parcels.create(api, provider)
        desk = Desk(messaging)
        agents = {str(agent["type"]): int(agent["id"]) for agent in await desk.get("/agents")}
        await messaging.put(f"/agents/{agents['human']}", json={"name": "Sari", "userId": user_id})
        for who, question, response, kind, seconds in TALKS:
            ticket = await desk.receive(question, who, "MAIL" if "@" in who else "MSGAPP_CLOUD")
            await desk.pass_time(seconds)
            if response:
                await desk.reply(ticket, agents[kind], response)
                await desk.act(ticket, "resolve", agentId=agents[kind])
    async with database.transaction() as tx:
        await tx.execute(NAME_KEY, company.id, "test key", "Asisten AI")


async def take(browser: Browser, address: str, secret: str, shot: Shot) -> None:
    context = await new_context(
        browser,
        base_url=address,
        viewport={"width": shot.width, "height": shot.height or 800},
        color_scheme=shot.scheme,
        reduced_motion="reduce",
    )
    await context.add_cookies([{"name": COOKIE, "value": secret, "url": f"{address}/console"}])
    page = await context.new_page()
    await page.goto(f"/console/test{shot.path}")
    file = FOLDER / f"{shot.name}.png"
    await page.screenshot(path=file, full_page=shot.height is None)
    await context.close()
    shrink(file)
    print(f"{file.name}: {file.stat().st_size // 1000} kB")


def shrink(file: Path) -> None:
    """Few colours are enough for pages, and a fraction of the size."""
    with Image.open(file) as taken:
        few = taken.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(file, optimize=True)


if __name__ == "__main__":
    asyncio.run(main())
