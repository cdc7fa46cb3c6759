"""Changes the company's business hours."""

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec import Raw

from sapa.access.actions import get_time_zone
from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.support.business_hours import queries
from sapa.support.business_hours.calendar import Calendar, build_calendar, parse_time
from sapa.support.business_hours.calendar import find_opening as find_opening_time
from sapa.support.business_hours.types import DAYS, BusinessHours, BusinessHoursIn, Holiday, OpenHours
from sapa.values.company import Company
from sapa.values.json import encode

_read_weekly = msgspec.json.Decoder(list[OpenHours]).decode
_read_holidays = msgspec.json.Decoder(list[Holiday]).decode


async def get_hours(db: Connection, company: Company) -> BusinessHours:
    """Always open until the company says otherwise."""
    return await queries.find_hours(db, company.id) or BusinessHours(company.time_zone, Raw(b"[]"), Raw(b"[]"), None)


async def get_calendar(db: Connection, company: Company) -> Calendar:
    hours = await get_hours(db, company)
    return build_calendar(hours.time_zone, _read_weekly(hours.weekly), _read_holidays(hours.holidays))


async def find_opening(db: Connection, company: Company, now: datetime) -> datetime | None:
    """When the company opens again; None while it is open."""
    return find_opening_time(await get_calendar(db, company), now)


async def update(tx: Tx, company: Company, body: BusinessHoursIn) -> BusinessHours:
    time_zone = company.time_zone if body.time_zone is None else await get_time_zone(tx, body.time_zone)
    _check(body.weekly)
    return await queries.set_hours(tx, company.id, time_zone, encode(body.weekly), encode(body.holidays))


def _check(weekly: Sequence[OpenHours]) -> None:
    """Hours of a day neither end before they begin nor overlap."""
    for day in DAYS:
        closed = parse_time("00:00")
        of_day = [(index, each) for index, each in enumerate(weekly) if each.day == day]
        for index, hours in sorted(of_day, key=lambda each: each[1].opens):
            opens, closes = parse_time(hours.opens), parse_time(hours.closes)
            field = f"weekly[{index}]"
            if closes <= opens:
                raise Invalid.field(field, f"closes must be after opens, which is {hours.opens} on {day}")
            if opens < closed:
                raise Invalid.field(field, f"hours must not overlap, as those from {hours.opens} on {day} do")
            closed = closes
