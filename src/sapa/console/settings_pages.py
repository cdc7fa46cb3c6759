"""Settings: the company, its environments and clock, and its loyalty program."""

from datetime import timedelta
from typing import Any

from starlette.responses import Response

from sapa.access import actions as access
from sapa.access.types import ClockTooFar
from sapa.backups.actions import get_state
from sapa.console.fields import parse_count, parse_money
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS, OWNERS
from sapa.console.routes import console, go_to
from sapa.http.errors import Invalid
from sapa.values.money import DIGITS
from sapa.values.phones import REGIONS

UNITS = ("minutes", "hours", "days")
MAX_AHEAD = 3_660
COUNTRIES, CURRENCIES = sorted(REGIONS), sorted(DIGITS)
REGIONAL = ("timeZone", "language", "currency", "country")
EARN_ON = ("paid", "fulfilled", "created")
ROUNDINGS = ("floor", "round", "ceil")
EMPTY_TIERS = 2


@console.get("/{environment}/settings/company", roles=DEVELOPERS)
async def show_company(page: PageRequest) -> Response:
    session = page.session
    async with page.context.database.connection() as db:
        environments = [
            await access.get_environment(db, company_id)
            for company_id in (session.live_company_id, session.test_company_id)
        ]
        backups = await get_state(db)
    settings = (await page.call("GET", "/company"))["data"]
    typed = {name: page.form_value(name) for name in REGIONAL}
    return page.show(
        "company.html",
        environments=environments,
        backups=backups,
        settings=typed if typed["currency"] else settings,
        cart_orders=settings["cartOrders"],
        countries=COUNTRIES,
        currencies=CURRENCIES,
        units=UNITS,
        given={name: page.form_value(name) for name in ("name", "amount", "unit")},
    )


@console.post("/{environment}/settings/company", roles=OWNERS, shown_by=show_company, says="Saved")
async def rename_company(page: PageRequest) -> Response:
    async with page.context.database.transaction() as tx:
        company = await access.rename_company(tx, page.company_id, page.form_value("name"))
        await page.record(tx, "company.renamed", f"{page.session.organisation} → {company.name}")
    return go_to(page.path("/settings/company"))


@console.post("/{environment}/settings/company/regional", roles=OWNERS, shown_by=show_company, says="Saved")
async def change_regional_settings(page: PageRequest) -> Response:
    body = {name: page.form_value(name) for name in REGIONAL}
    await page.call("PUT", "/company", body=body, noted=("settings.changed", "company"))
    return go_to(page.path("/settings/company"))


@console.post("/{environment}/settings/company/carts", roles=OWNERS, shown_by=show_company, says="Saved")
async def change_cart_settings(page: PageRequest) -> Response:
    body = {"cartOrders": bool(page.form_value("cartOrders"))}
    await page.call("PUT", "/company", body=body, noted=("settings.changed", "company"))
    return go_to(page.path("/settings/company#carts"))


@console.post("/{environment}/settings/clock", roles=DEVELOPERS, shown_by=show_company, says="Clock moved")
async def move_clock(page: PageRequest) -> Response:
    """Forward, or back to real time."""
    by = None if page.form_value("reset") else _parse_span(page)
    async with page.context.database.transaction() as tx:
        await access.move_clock(tx, page.company_id, by)
        await page.record(tx, "clock.moved", "0" if by is None else f"+{by}")
    return go_to(page.path("/settings/company"))


def _parse_span(page: PageRequest) -> timedelta:
    amount, unit = page.form_value("amount"), page.form_value("unit")
    if unit not in UNITS:
        raise Invalid.field("unit", f"must be one of {', '.join(UNITS)}")
    if not amount.isascii() or not amount.isdigit() or not 1 <= int(amount[:9]) <= 1_000_000:
        raise Invalid.field("amount", "must be a whole number from 1 to 1,000,000")
    span = timedelta(**{unit: int(amount)})
    if span > timedelta(days=MAX_AHEAD):
        raise ClockTooFar
    return span


@console.get("/{environment}/settings/loyalty", roles=DEVELOPERS)
async def show_loyalty_settings(page: PageRequest) -> Response:
    settings = (await page.call("GET", "/loyalty/settings"))["data"]
    tiers = (await page.call("GET", "/loyalty/point-conversion"))["data"]["tiers"]
    return page.show(
        "loyalty_settings.html",
        settings=_list_typed(page) if page.form_value("earnOn") else settings,
        tiers=_list_rows(page) if page.form.get("amount") is not None else _fill(tiers),
        earn_on=EARN_ON,
        roundings=ROUNDINGS,
    )


@console.post("/{environment}/settings/loyalty", roles=DEVELOPERS, shown_by=show_loyalty_settings, says="Saved")
async def change_loyalty_settings(page: PageRequest) -> Response:
    months = page.form_value("expiryMonths")
    body = {
        "enabled": bool(page.form_value("enabled")),
        "earnOn": page.form_value("earnOn"),
        "rounding": page.form_value("rounding"),
        "expiryMonths": _parse_number("expiryMonths", months) if months else None,
        "reservationTtlSeconds": _parse_number("reservationTtlSeconds", page.form_value("reservationTtlSeconds")),
    }
    await page.call("PUT", "/loyalty/settings", body=body, noted=("settings.changed", "loyalty"))
    return go_to(page.path("/settings/loyalty"))


@console.post("/{environment}/settings/loyalty/tiers", roles=DEVELOPERS, shown_by=show_loyalty_settings, says="Saved")
async def replace_tiers(page: PageRequest) -> Response:
    rows = [row for row in _list_rows(page) if row["currencyAmount"] or row["points"]]
    tiers = [
        {
            "currencyAmount": _parse_amount(page, f"tiers[{number}].currencyAmount", row["currencyAmount"]),
            "points": parse_count(f"tiers[{number}].points", row["points"]),
        }
        for number, row in enumerate(rows)
    ]
    await page.call("POST", "/loyalty/point-conversion", body={"tiers": tiers}, noted=("settings.changed", "loyalty"))
    return go_to(page.path("/settings/loyalty"))


def _list_typed(page: PageRequest) -> dict[str, Any]:
    names = ("earnOn", "rounding", "expiryMonths", "reservationTtlSeconds")
    return {"enabled": bool(page.form_value("enabled")), **{name: page.form_value(name) for name in names}}


def _list_rows(page: PageRequest) -> list[dict[str, Any]]:
    """The tiers as typed, including empty ones."""
    typed = zip(page.form_values("amount"), page.form_values("points"), strict=False)
    return [{"currencyAmount": amount.strip(), "points": points.strip()} for amount, points in typed]


def _fill(tiers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*tiers, *({"currencyAmount": "", "points": ""} for _ in range(EMPTY_TIERS))]


def _parse_number(field: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise Invalid.field(field, "must be a whole number")
    return int(text)


def _parse_amount(page: PageRequest, field: str, text: str) -> int | float:
    amount = parse_money(page, field, text=text)
    if amount is None:
        raise Invalid.field(field, "must be an amount, such as 10000")
    return amount
