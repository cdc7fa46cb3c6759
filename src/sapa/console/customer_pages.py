"""One customer: figures on top, and tabs for what happened, orders, conversations, points, parcels and consent."""

import re
from asyncio import gather
from datetime import datetime
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from sapa.console.error_words import name_column
from sapa.console.inbox_pages import read_clock
from sapa.console.inbox_queue import ask
from sapa.console.loyalty_pages import adjust_points
from sapa.console.member_names import read_member_names
from sapa.console.page_request import PageRequest
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console, go_to
from sapa.console.translations import translate
from sapa.customers.types import CustomerIn
from sapa.messaging.channels.interface import Source
from sapa.messaging.consents.types import ALL_CHANNELS
from sapa.orders import actions as orders
from sapa.orders.types import CustomerSales
from sapa.shipping.shipments import actions as shipments

TABS = ("timeline", "orders", "conversations", "points", "parcels", "consent")
ROWS = "20"
FORM_FIELDS = (
    "points",
    "reason",
    "direction",
    "app",
    "status",
    "proof.text",
    "proof.place",
    "proof.reference",
    "notes",
)
ICONS = {"support": "chat", "loyalty": "gift", "system": "bag"}
"""Of a timeline entry, by its category."""

_parse_ticket = re.compile(r"ticket (\S+) on (\w+)", re.ASCII).fullmatch
_parse_order = re.compile(r"order (\S+): (\S+) ([A-Z]{3})", re.ASCII).fullmatch
_LOG_WORDS = re.compile(r"\b(available|reserved|committed|released|expired|failed)\b(?=: | →|$)", re.ASCII)
_LOG_NUMBERS = re.compile(r"(?<=: )\d+|(?<=→ )\d+", re.ASCII)
_LOG_FIELDS = re.compile(rf"(?:^|(?<=; ))(?:{'|'.join(CustomerIn.__struct_encode_fields__)})(?=: | changed)")
_LOG_CHANGED = re.compile(r"(?<!:) changed(?=;|$)")

Json = dict[str, Any]


class TimelineLine(Struct, frozen=True):
    """A timeline entry as people read it."""

    entry: Json
    icon: str
    about: str
    """What the entry is about, if it is no ticket and no order."""
    channel: str = ""
    path: str = ""
    number: str = ""
    amount: str = ""
    currency: str = ""


@console.get("/{environment}/customers/{id}", roles=EVERYBODY)
async def show_customer(page: PageRequest) -> Response:
    id, tab = page.request.path_params["id"], _choose_tab(page)
    customer, placed, wallet, tickets, sales, shown, clock, names = await gather(
        page.call("GET", f"/customers/{id}"),
        _list_orders(page, id),
        page.call("GET", f"/loyalty/customers/{id}/wallet"),
        ask(page, "/tickets", {"customerId": id, "limit": ROWS}),
        _sum_sales(page, id),
        _read_tab(page, id, tab),
        read_clock(page),
        read_member_names(page),
    )
    waits = sorted(one["waitingSince"] for one in tickets["data"] if one["waitingSince"])
    return page.show(
        "customer.html",
        customer=customer["data"],
        tab=tab,
        sales=sales,
        rhythm=_measure_weeks(sales),
        orders=placed,
        tickets=tickets,
        waits=waits,
        clock=clock,
        names=names,
        wallet=wallet["data"],
        apps=(ALL_CHANNELS, *Source),
        given={name: page.form_value(name) for name in FORM_FIELDS},
        **shown,
    )


@console.post("/{environment}/customers/{id}/notes", roles=EVERYBODY, shown_by=show_customer, says="Note added")
async def add_note(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    await page.call("POST", f"/loyalty/customers/{id}/timeline", body={"notes": page.form_value("notes")})
    return go_to(page.path(f"/customers/{id}"))


@console.post("/{environment}/customers/{id}/points", roles=EVERYBODY, shown_by=show_customer, says="Points changed")
async def change_points(page: PageRequest) -> Response:
    await adjust_points(page)
    return go_to(page.path(f"/customers/{page.request.path_params['id']}"))


def _choose_tab(page: PageRequest) -> str:
    """A form that was refused is shown again in its tab."""
    if page.form:
        return "consent" if "app" in page.form else "timeline"
    wanted = page.request.query_params.get("tab", "")
    return wanted if wanted in TABS else TABS[0]


async def _list_orders(page: PageRequest, id: str) -> Json:
    listed: Json = await page.call("GET", "/orders", {"customerId": id, "limit": ROWS})
    return listed


async def _sum_sales(page: PageRequest, id: str) -> list[CustomerSales]:
    company = await page.api.get_company(page.company_id)
    async with page.context.database.connection() as db:
        return await orders.sum_sales_to(db, company, id)


async def _read_tab(page: PageRequest, id: str, tab: str) -> Json:
    """Only what the open tab shows, besides what the tabs count. The parcels are those of the newest orders."""
    if tab == "parcels":
        company = await page.api.get_company(page.company_id)
        order_ids = [order["id"] for order in (await _list_orders(page, id))["data"]]
        async with page.context.database.connection() as db:
            return {"parcels": await shipments.list_of_orders(db, company, order_ids)}
    if tab == "points":
        return {"history": (await page.call("GET", f"/loyalty/customers/{id}/history", {"limit": ROWS}))["data"]}
    if tab == "consent":
        return {"consents": (await page.call("GET", f"/customers/{id}/consents", {"limit": ROWS}))["data"]}
    if tab != "timeline":
        return {}
    after = page.request.query_params.get("after", "")
    timeline = await page.call("GET", f"/loyalty/customers/{id}/timeline", {"limit": ROWS, "after": after})
    return {"lines": [_build_line(page, entry) for entry in timeline["data"]], "timeline": timeline["meta"]}


def _build_line(page: PageRequest, entry: Json) -> TimelineLine:
    log, icon = entry["edit_log"] or "", "note" if entry["type"] == "note_added" else ICONS[entry["category"]]
    if ticket := _parse_ticket(log):
        return TimelineLine(entry, icon, "", channel=ticket[2], path=page.path(f"/inbox/{ticket[1]}"))
    if order := _parse_order(log):
        path = page.path(f"/orders?search={order[1]}")
        return TimelineLine(entry, icon, "", path=path, number=order[1], amount=order[2], currency=order[3])
    return TimelineLine(entry, icon, (_translate_log if entry["category"] == "loyalty" else _name_fields)(page, log))


def _translate_log(page: PageRequest, log: str) -> str:
    """What became of points and redemptions: `available: 750 → 1250; reserved: 500 → 0`."""
    words = _LOG_WORDS.sub(lambda found: translate(page.language, found[0]), log)
    return _LOG_NUMBERS.sub(lambda found: page.formats.number(int(found[0])), words)


def _name_fields(page: PageRequest, log: str) -> str:
    """What was changed of a customer: `lastName: – → Baru; addresses changed`."""
    named = _LOG_FIELDS.sub(lambda found: name_column(page.language, found[0]), log)
    return _LOG_CHANGED.sub(f" {translate(page.language, 'changed')}", named)


def _measure_weeks(sales: list[CustomerSales]) -> int | None:
    """The usual distance between orders; None for fewer than three."""
    count = sum(one.orders for one in sales)
    if count < 3:
        return None
    first = min(datetime.fromisoformat(one.first_at) for one in sales)
    last = max(datetime.fromisoformat(one.last_at) for one in sales)
    return max(1, round((last - first).days / 7 / (count - 1)))
