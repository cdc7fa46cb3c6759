"""Reports at the console: charts with their tables, any window, and the same as a file."""

import csv
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from html import unescape
from io import StringIO

import httpx
import pytest

from sapa.access.actions import get_company
from sapa.console.charts import build_bars, build_columns, build_lines, choose_top, shorten
from sapa.console.report_pages import build_csv
from sapa.db.pool import Database
from sapa.http.errors import Invalid
from sapa.people.types import Role
from sapa.reports import actions as reports
from sapa.values.instants import format_instant
from sapa.values.sealing import Vault
from tests.conftest import Installation, connect
from tests.console.people import make_person, open_browser, read_token
from tests.factories import Environments, make_endpoint, make_key, make_order
from tests.messaging.conftest import connect_messaging
from tests.shipping import parcels
from tests.support.ticket_steps import Desk


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company)) as client:
        yield client


def read_csv(response: httpx.Response) -> list[list[str]]:
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv.reader(StringIO(response.text)))


async def test_sales_and_money_are_shown_with_their_tables_and_as_files(
    api: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    empty = (await owner.get("/live/reports")).text
    assert "No orders in this period" in empty
    assert "No payments or refunds in this period" in empty
    fields = {"shippingLines": [{"title": "JNE", "price": 10000}], "discounts": [{"amount": 30000}]}
    paid, part, gone = [(await make_order(api, **fields))["id"] for _ in range(3)]
    await api.put(f"/orders/{paid}", json={"financialStatus": "paid"})
    await api.post(f"/orders/{part}/payments", json={"amount": 50000, "method": "cash"})
    await api.post(f"/orders/{part}/refunds", json={"amount": 20000})
    await api.put(f"/orders/{gone}", json={"status": "cancelled"})
    await make_order(api, currency="USD", lineItems=[{"title": "Kopi", "price": 9.5, "quantity": 1}])
    page = (await owner.get("/live/reports?days=7")).text
    charts = re.findall(r'<svg[^>]*aria-labelledby="(\w+)-title \w+-desc".*?</svg>', page, re.DOTALL)
    assert charts == ["orders", "sales"]
    assert page.count("<rect") == 14 + 1
    assert "whole days in Asia/Jakarta" in page
    assert "Rp\u00a0220,000" in page
    assert "USD\u00a09.50" in page
    rows = read_csv(await owner.get("/live/reports/files/sales.csv?days=7"))
    assert rows[0] == [
        "day", "orders", "cancelled_orders", "gross", "discounts", "cancelled", "refunded", "net", "shipping", "fees",
        "tax", "total", "currency",
    ]  # fmt: skip
    figures = ["3", "1", "450000", "90000", "120000", "20000", "220000", "20000", "0", "0", "240000", "IDR"]
    assert rows[-1][1:] == figures
    assert len(rows) == 8
    money = read_csv(await owner.get("/live/reports/files/money.csv?days=7"))
    assert money[0] == ["day", "payments", "paid", "refunds", "refunded", "net", "currency"]
    assert money[-1][1:] == ["2", "180000", "1", "20000", "160000", "IDR"]
    assert (await owner.get("/test/reports?days=7")).text.count("<svg") == empty.count("<svg")


async def test_every_figure_leads_to_its_orders(api: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    numbers = [(await make_order(api))["orderNumber"] for _ in range(2)]
    id = (await api.get("/orders")).json()["data"][0]["id"]
    await api.put(f"/orders/{id}", json={"financialStatus": "paid"})
    await api.post(f"/orders/{id}/refunds", json={"amount": 1})
    foreign = await make_order(api, currency="USD", lineItems=[{"title": "Kopi", "price": 9.5, "quantity": 1}])
    await api.put(f"/orders/{foreign['id']}", json={"financialStatus": "paid"})
    page = (await owner.get("/live/reports?days=7")).text
    cells = re.findall(r"<td>(.*?)</td>", page[page.index(">gross sales<") :].partition("</tr></tbody>")[0])
    assert ["<a " in cell for cell in cells[:10]] == [True, True, *[False] * 3, True, *[False] * 3, True], (
        "what has no list"
    )
    leads = {unescape(path) for path in re.findall(r'href="/console(/live/orders\?[^"]+)"', page)}
    assert len(leads) == 3, "the whole window in both currencies, and today"
    for path in leads:
        listed = (await owner.get(path)).text
        is_foreign = "currency=USD" in path
        assert [f"#{number}" in listed for number in numbers] == [not is_foreign] * 2
        assert (f"#{foreign['orderNumber']}" in listed) == is_foreign
        assert "Placed from" in listed
    for kind, count in (("payment", 1), ("refund", 1), ("", 2)):
        pattern = rf'href="/console(/live/reports/transactions\?[^"]+{f"kind={kind}" if kind else ""})"'
        shown = (await owner.get(unescape(re.findall(pattern, page)[-1]))).text
        assert shown.count(f"/console/live/orders/{id}") == (count if kind else 2)
        assert foreign["id"] not in shown
        chosen = {unescape(path) for path in re.findall(r'href="(\?days=7[^"]*)"', shown)}
        assert chosen == {f"?days=7{f'&kind={kind}' if kind else ''}&currency=IDR"}
    home = (await owner.get("/live")).text
    assert "Net sales today" in home
    assert "Rp\u00a0299,999" in home
    links = re.findall(r'href="/console(/live/orders\?[^"]*createdFrom[^"]+)"', home)
    today, yesterday = (unescape(path) for path in links[:2])
    listed = (await owner.get(today)).text
    assert all(f"#{number}" in listed for number in numbers)
    listed = (await owner.get(yesterday)).text
    assert not any(f"#{number}" in listed for number in numbers)


async def test_sales_are_shown_in_the_currency_of_the_person(api: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    """The company's is IDR."""
    await make_order(api)
    await make_order(api, currency="USD", lineItems=[{"title": "Teh", "price": 9.5, "quantity": 2}])
    products, rows = "/live/reports/breakdown?by=products", "/live/reports/orders?article=Teh"
    assert "Teh" not in (await owner.get(products)).text
    form = {"token": await read_token(owner), "name": "Sari"}
    refused = await owner.post("/profile", data=form | {"currency": "XYZ"})
    assert refused.status_code == 400
    assert 'name="currency" data-names="currency" aria-invalid="true"' in refused.text
    assert (await owner.post("/profile", data=form | {"currency": "USD"})).status_code == 303
    assert '<option value="USD" selected>' in (await owner.get("/profile")).text
    page = (await owner.get("/live/reports")).text
    assert "Net sales (USD)" in page
    assert [line[1] for line in read_csv(await owner.get("/live/reports/files/sales.csv?days=7"))][-1] == "1"
    for path in ("/live", products, rows):
        assert "USD\u00a019" in (await owner.get(path)).text, path
    assert (await owner.post("/profile", data=form)).status_code == 303
    assert "Net sales (IDR)" in (await owner.get("/live/reports")).text


async def test_days_follow_the_companys_time_zone(
    api: httpx.AsyncClient, owner: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    id = (await make_order(api))["id"]
    async with database.transaction() as tx:
        await tx.execute(
            "UPDATE orders SET created_at = '2026-03-31 16:30Z' WHERE company_id = $1 AND id = $2", company.live, id
        )
    path = "/live/reports/files/sales.csv?from=2026-03-31&to=2026-04-01"
    for zone, day in (("Asia/Jakarta", "2026-03-31"), ("Asia/Jayapura", "2026-04-01"), ("UTC", "2026-03-31")):
        assert (await api.put("/company", json={"timeZone": zone})).status_code == 200
        rows = read_csv(await owner.get(path))
        assert [row[0] for row in rows[1:] if row[1] == "1"] == [day], zone


async def test_the_health_of_webhooks_is_shown(
    installation: Installation, database: Database, company: Environments, owner: httpx.AsyncClient
) -> None:
    url = "https://hooks.example.com/=SUM(A1)"
    created = await make_endpoint(database, Vault(installation.server.secret_key), company.live, url=url)
    insert = """
        INSERT INTO webhook_attempts (company_id, endpoint_id, started_at, delivery_id, number, event_id, event_at,
                                      kind, milliseconds, outcome)
        SELECT $1, $2, now() - make_interval(secs => n), 'whd_' || n, 1, 'evt_' || n, now(), 'order.created', 100,
               CASE WHEN n % 4 = 0 THEN 'failed' ELSE 'delivered' END
          FROM generate_series(1, 1200) AS n"""
    async with database.transaction() as tx:
        await tx.execute(insert, company.live, created.endpoint.id)
    page = (await owner.get("/live/reports?days=7")).text
    assert "75%" in page
    assert "100 ms" in page
    rows = read_csv(await owner.get("/live/reports/files/webhooks.csv?days=7"))
    assert rows[1][:7] == [created.endpoint.id, url, "active", "1000", "750", "250", "100"]


async def test_people_and_ai_agents_are_compared_and_settings_made(
    installation: Installation, database: Database, company: Environments, owner: httpx.AsyncClient
) -> None:
    assert "No agents yet" in (await owner.get("/test/reports/agents")).text
    token, page = await read_token(owner), "/test/settings/agents"
    for name, kind in (("Sari", "human"), ("=HYPERLINK();@SUM()", "ai")):
        form = {"token": token, "name": name, "type": kind, "userId": ""}
        assert (await owner.post(page, data=form)).status_code == 303
    wrong = await owner.post(page, data={"token": token, "name": "", "type": "human", "userId": "1x"})
    assert wrong.status_code == 400
    listed = (await owner.get(page)).text
    sari = re.findall(r'id="agent-(\d+)"', listed)[-1]
    user = re.findall(r'<option value="(\d+)"', listed)[0]
    form = {"token": token, "name": "Sari Dewi", "userId": user}
    assert (await owner.post(f"{page}/{sari}", data=form)).status_code == 303
    assert (await owner.post(f"/live/settings/agents/{sari}", data=form)).status_code == 404
    async with connect(installation, (await make_key(database, company.test)).raw) as api:
        agent = (await api.get(f"{installation.address}/messaging/v1/agents/{sari}")).json()["data"]
    assert (agent["name"], agent["active"], agent["userId"]) == ("Sari Dewi", False, int(user))
    support = {"token": token, "reopenWindowHours": "48", "autoResolveHours": "0", "reopenAssignee": "queue"}
    assert (await owner.post("/test/settings/support", data=support)).status_code == 303
    late = await owner.post("/test/settings/support", data=support | {"reopenWindowHours": "9000"})
    assert late.status_code == 400
    assert 'id="reopenWindowHours-problem"' in late.text
    assert 'value="48"' in (await owner.get("/test/settings/support")).text
    rows = read_csv(await owner.get("/test/reports/files/agents.csv"))
    assert [row[1] for row in rows[1:]] == ["'=HYPERLINK();'@SUM()"]
    assert "<td>–</td>" in (await owner.get("/test/reports/agents?channel=widget")).text
    audit = (await owner.get("/test/audit")).text
    assert (audit.count("Agent created"), audit.count("Agent changed"), audit.count("Settings changed")) == (2, 1, 1)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("from=yesterday", "the first day: must be a date, such as 2026-01-31"),
        ("from=2026-02-01&to=2026-01-01", "must not be after the last day"),
        ("from=2001-01-01&to=2026-01-01", "must be at most 1830 days before the last day"),
        ("days=8", "the period: choose one of the options"),
    ],
)
async def test_an_unusable_date_range_shows_an_error_and_the_default(
    owner: httpx.AsyncClient, asked: str, said: str
) -> None:
    page = await owner.get(f"/live/reports?{asked}")
    assert page.status_code == 200
    assert said in page.text


async def test_times_by_kind_cover_all_responses(
    installation: Installation, database: Database, company: Environments, owner: httpx.AsyncClient
) -> None:
    async with connect_messaging(installation, (await make_key(database, company.test)).raw) as client:
        desk = Desk(client)
        sari, dewi = await desk.create_agent("Sari"), await desk.create_agent("Dewi")
        for number, (agent, seconds) in enumerate([(sari, 1200), (sari, 1200), (dewi, 3000)]):
            ticket = await desk.receive("Masih ada?", f"+62812345670{number}")
            await desk.pass_time(seconds)
            await desk.reply(ticket, agent)
            if agent == sari:
                await desk.act(ticket, "resolve")
    page = (await owner.get("/test/reports/agents?days=7")).text
    row = re.search(r'<th scope="row" class="long">human agents</th>(.*?)</tr>', page)
    assert row is not None
    tickets, first, _, resolution = re.findall(r"<td>([^<]*)</td>", row[1])
    assert (tickets, first[:5], resolution[:5]) == ("3", "00:20", "00:20"), (
        "the median, which one long wait does not move"
    )


async def test_the_ratings_of_agents_are_compared_and_lead_to_their_conversations(
    owner: httpx.AsyncClient, desk: Desk
) -> None:
    sari, _ = await desk.create_agent("Sari"), await desk.create_agent("Dewi")
    earlier = await desk.rate(sari, 3, "+628123456701")
    await desk.pass_time(40 * 86_400)
    rated = [await desk.rate(sari, score, f"+62812345671{score}") for score in (4, 5)]
    page = (await owner.get("/test/reports/agents")).text
    rows = {name: list_cells(page, name) for name in ("Sari", "Dewi")}
    assert (rows["Sari"][5:7], rows["Sari"][9]) == (["4.5", "2"], "3 +50%")
    assert (rows["Dewi"][5:7], rows["Dewi"][9]) == (["–", "–"], "–")
    link = re.search(r'href="/console(/test/reports/ratings[^"]+)">4\.5', page)
    assert link is not None
    listed = (await owner.get(unescape(link[1]))).text
    assert [ticket["id"] in listed for ticket in (earlier, *rated)] == [False, True, True]
    assert ("★ 5 / 5" in listed, "Nilai 4" in listed) == (True, True)
    assert rated[0]["id"] not in (await owner.get(f"{unescape(link[1])}&channel=mail")).text
    header, *lines = read_csv(await owner.get("/test/reports/files/agents.csv"))
    assert header[-2:] == ["average_rating", "ratings"]
    assert [line[-2:] for line in lines] == [["", "0"], ["4.5", "2"]]
    assert "<td>–</td>" in (await owner.get("/test/reports/agents?channel=mail")).text


def list_cells(page: str, name: str) -> list[str]:
    """What the row of an agent says."""
    row = re.search(rf'<th scope="row"><a[^>]*>{name}</a></th>(.*?)</tr>', page, re.DOTALL)
    assert row is not None
    return [" ".join(re.sub(r"<[^>]*>", " ", cell).split()) for cell in re.findall(r"<td>(.*?)</td>", row[1])]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("days=8", "the period: choose one"),
        ("from=yesterday", "the first day: must be"),
        ("channel=pigeon", "a channel: choose one"),
    ],
)
async def test_a_file_holds_what_was_asked_for_or_nothing(owner: httpx.AsyncClient, asked: str, said: str) -> None:
    refused = await owner.get(f"/live/reports/files/agents.csv?{asked}")
    assert (refused.status_code, refused.headers["content-type"]) == (400, "text/html; charset=utf-8")
    assert said in refused.text


async def test_agents_see_no_reports(installation: Installation, database: Database, company: Environments) -> None:
    async with open_browser(installation, await make_person(database, company, Role.AGENT)) as agent:
        for path in ("/live/reports", "/live/reports/agents", "/live/reports/files/orders.csv"):
            assert (await agent.get(path)).status_code == 403
        assert "/reports" not in (await agent.get("/live")).text


def test_what_a_spreadsheet_would_run_is_a_text() -> None:
    rows = [("=1+1", "Kopi;=1+1", "a\t'@x", "-x", "", "+62", "ok", -3)]
    assert build_csv(rows).splitlines() == ["'=1+1,Kopi;'=1+1,a\t''@x,'-x,,+62,ok,-3"]


@pytest.mark.parametrize(
    ("most", "top"), [(0, 4), (4, 4), (5, 8), (9, 12), (13, 16), (99, 100), (101, 120), (2001, 2400), (10**9, 10**9)]
)
def test_an_axis_ends_at_a_round_number(most: int, top: int) -> None:
    assert choose_top(most) == top


def test_charts_stay_inside_their_frame() -> None:
    labels = [f"01-{day:02d}" for day in range(1, 63)]
    values = [day * 7919 % 1000 for day in range(62)]
    columns, lines = (
        build_columns(labels, "orders", values),
        build_lines(labels, {"sent": values, "read": values[::-1]}),
    )
    bars = build_bars([("delivered", [3, 9]), ("draft", [0, 0])], ["human", "ai"])
    empty = build_bars([("first answer", [None, 2.5])], ["human", "ai"]).boxes
    assert [(box.width > 0, box.text) for box in empty] == [(False, "–"), (True, "2.5")]
    for box in columns.boxes + bars.boxes:
        assert 0 <= box.x <= box.x + box.width <= 400
        assert box.height >= 0
    tallest = max(columns.boxes, key=lambda box: box.height)
    assert tallest.title == f"{labels[values.index(max(values))]}: {max(values)}"
    assert all(0 <= x <= 400 and 0 <= y <= 200 for line in lines.lines for x, y in line.dots)
    assert len(columns.along) <= 5
    assert [shorten(number) for number in (950, 1500, 20_000_000, 3_000_000_000)] == ["950", "1.5k", "20M", "3B"]
    assert [shorten(number, "id") for number in (1500, 20_000_000, 3_000_000_000)] == ["1,5 rb", "20 jt", "3 M"]


async def test_figures_are_compared_and_broken_down_to_their_rows(
    database: Database, company: Environments, api: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    lines = [{"title": "Kopi Gayo", "price": 85_000, "quantity": 2}, {"title": "Mug", "price": 40_000, "quantity": 1}]
    await make_order(api, lineItems=lines)
    cancelled = await make_order(api, lineItems=lines)
    await api.put(f"/orders/{cancelled['id']}", json={"status": "cancelled"})
    page = (await owner.get("/live/reports")).text
    assert "Compared with" in page
    assert "before: Rp" in unescape(page).replace("\u00a0", " ")
    rows = read_csv(await owner.get("/live/reports/breakdown", params={"by": "products", "file": "1"}))
    assert rows[1:] == [["Kopi Gayo", "1", "2", "0", "170000"], ["Mug", "1", "1", "0", "40000"]]
    for by in ("products", "channels", "carriers"):
        assert (await owner.get("/live/reports/breakdown", params={"by": by})).status_code == 200
    assert "Nothing in this period" not in (await owner.get("/live/reports/breakdown")).text
    older = await make_order(api, lineItems=[{"title": "Kopi Gayo", "price": 85_000, "quantity": 1}])
    async with database.connection() as db:
        aged = "UPDATE orders SET created_at = created_at - interval '40 days' WHERE company_id = $1 AND id = $2"
        await db.execute(aged, company.live, older["id"])
    sold = unescape((await owner.get("/live/reports/breakdown")).text).replace("\u00a0", " ")
    row = sold[sold.index("Kopi Gayo") :].partition("</tr>")[0]
    assert ("Rp 170,000" in row, "Rp 85,000" in row, "+100%" in row) == (True, True, True), row
    await owner.post("/live/settings/agents", data={"token": await read_token(owner), "name": "Sari", "type": "human"})
    assert "00:00:00" not in (await owner.get("/live/reports/agents")).text


async def test_channels_are_compared_with_the_period_before(owner: httpx.AsyncClient, desk: Desk) -> None:
    """Messages of neither period count in none."""
    sari = await desk.create_agent("Sari")
    for replies in (1, 1, 2):
        ticket = await desk.receive()
        for _ in range(replies):
            await desk.reply(ticket, sari)
        await desk.pass_time(30 * 86_400)
    page = (await owner.get("/test/reports/breakdown", params={"by": "channels"})).text
    assert "Nothing in this period" in page
    await desk.receive()
    await desk.receive("Halo?", "ayu@example.com", "MAIL")
    page = (await owner.get("/test/reports/breakdown", params={"by": "channels"})).text
    assert list_cells(page, "WhatsApp") == ["1", "–", "–", "–", "–", "2 -100%"]
    assert list_cells(page, "Email") == ["1", "–", "–", "–", "–", "–"]
    rows = read_csv(await owner.get("/test/reports/breakdown", params={"by": "channels", "file": "1"}))
    assert sorted(rows[1:]) == [["MAIL", "1", "0", "0", "0", "0"], ["MSGAPP_CLOUD", "1", "0", "0", "0", "0"]]


async def test_each_row_of_a_breakdown_leads_to_its_rows(
    installation: Installation, database: Database, company: Environments, owner: httpx.AsyncClient, desk: Desk
) -> None:
    agent = await desk.create_agent("Sari")
    ticket = await desk.receive()
    await desk.reply(ticket, agent)
    await desk.act(ticket, "resolve")
    async with connect(installation, (await make_key(database, company.test)).raw) as sandbox:
        parcel = await parcels.create(sandbox, "custom", delivery={"name": "Ayu", "address": "Jl. Satu"})
        order = await make_order(sandbox, lineItems=[{"title": "Bungkus & pita", "price": 5_000, "quantity": 2}])
        other = await make_order(sandbox)
    rows = {
        "breakdown?by=products": (r'href="/console([^"]+)">Bungkus', order["id"]),
        "breakdown?by=channels": (r'href="/console([^"]+)">WhatsApp', ticket["id"]),
        "breakdown?by=carriers": (r'href="/console(/test/shipments\?[^"]+provider=custom[^"]*)"', parcel["id"]),
        "agents": (r'href="/console([^"]+)">Sari', ticket["id"]),
        "": (r'class="kpi" href="/console(/test/shipments\?[^"]+)"', parcel["id"]),
        "?days=7": (r'href="/console(/test/shipments\?[^"]+status=[^"]+)"', parcel["id"]),
    }
    for report, (link, id) in rows.items():
        page = (await owner.get(f"/test/reports/{report}".replace("/?", "?").rstrip("/"))).text
        found = re.search(link, page)
        assert found is not None, page
        listed = (await owner.get(unescape(found[1]))).text
        assert (id in listed, other["id"] in listed) == (True, False), listed
        earlier = re.sub(r"(from|to|createdFrom|createdTo)=[\d-]{10}", r"\1=2020-01-01", unescape(found[1]))
        assert id not in (await owner.get(earlier)).text


async def test_figures_of_two_currencies_are_not_added(api: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    for fee, currency in ((18_000, "IDR"), (7, "USD")):
        await parcels.create(api, "custom", fee=fee, currency=currency)
    rows = read_csv(await owner.get("/live/reports/breakdown", params={"by": "carriers", "file": "1"}))
    assert rows[1:] == [["Custom", "2", "0", "0", "18000"]]


async def test_a_loss_is_no_measure_of_growth(
    database: Database, company: Environments, api: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    """A percentage of less than nothing says the opposite."""
    order = await make_order(api, lineItems=[{"title": "Kopi", "price": 50_000, "quantity": 1}])
    paid_at = format_instant(datetime.now(UTC) - timedelta(days=60))
    paid = {"amount": 50_000, "method": "bank_transfer", "paidAt": paid_at}
    assert (await api.post(f"/orders/{order['id']}/payments", json=paid)).status_code == 201
    await api.post(f"/orders/{order['id']}/refunds", json={"amount": 30_000})
    today = datetime.now(UTC).date()
    week = {"from": str(today + timedelta(days=2)), "to": str(today + timedelta(days=4))}
    page = unescape((await owner.get("/live/reports", params=week)).text).replace("\u00a0", " ")
    tile = page[page.index("Payments − refunds") :].partition("</a>")[0]
    assert ("before: −Rp 30,000" in tile, "%" in tile) == (True, False), tile
    listed = (await owner.get("/live/reports/transactions", params={"days": "90"})).text
    assert ("bank transfer" in listed, "bank_transfer" in listed) == (True, False)


async def test_products_of_very_many_orders_are_refused(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await make_order(api)
    await make_order(api)
    async with database.connection() as db:
        shop = await get_company(db, company.live)
        window = await reports.get_window(db, shop, "7", "", "")
        assert len(await reports.list_products(db, shop, window, shop.currency, max_orders=2)) == 1
        with pytest.raises(Invalid):
            await reports.list_products(db, shop, window, shop.currency, max_orders=1)


COLUMNS = """
    SELECT column_name FROM information_schema.columns WHERE table_name = 'orders' AND is_generated = 'NEVER'"""
OTHERWISE = {
    "id": "id || '_' || n", "order_id": "order_id || '_' || n", "order_number": "order_number || '_' || n",
    "created_at": "created_at - interval '40 days'",
}  # fmt: skip


@pytest.mark.long
async def test_a_window_is_shown_when_only_the_one_before_has_too_many_orders(
    owner: httpx.AsyncClient, api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    order = await make_order(api)
    async with database.connection() as db:
        names = [row["column_name"] for row in await db.fetch(COLUMNS)]
        copied = ", ".join(OTHERWISE.get(name, name) for name in names)
        await db.execute("SET statement_timeout = 0")
        await db.execute(
            f"INSERT INTO orders ({', '.join(names)}) SELECT {copied} FROM orders, generate_series(0, 200000) n"
            " WHERE company_id = $1 AND id = $2",
            company.live, order["id"], timeout=600,
        )  # fmt: skip
        await db.execute("RESET statement_timeout")
    page = unescape((await owner.get("/live/reports/breakdown", params={"by": "products", "days": "30"})).text)
    assert re.search(r"Not compared: .+ has too many orders\. Choose fewer days\.", page)
    assert order["lineItems"][0]["title"] in page
    refused = unescape((await owner.get("/live/reports/breakdown", params={"by": "products", "days": "90"})).text)
    assert "Not compared" in refused or "Compared with" in refused
    assert "more than 200,000 orders" in refused
