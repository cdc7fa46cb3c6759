"""Builds what the page shows of a shipment. Pure: no database."""

import math
from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import quote_plus
from zoneinfo import ZoneInfo

from sapa.shipping.shipments.actions import name_courier
from sapa.shipping.states import CANCELLED, GROUP_OF, TERMINAL
from sapa.shipping.tracking.types import ShipmentEvent
from sapa.shipping.tracking_page.types import PageEvent, PageLanguage, PageStep, StoredPageSettings, TrackingView
from sapa.shipping.tracking_page.words import (
    PROBLEMS,
    STAGE_OF,
    STAGES,
    find_detail,
    get_headline,
    get_stage_word,
)
from sapa.shipping.types import Party, StoredShipment
from sapa.values.company import Company

DEFAULT_COLOR = "#0f766e"
BLACK, WHITE = "#000000", "#ffffff"
MAP = "https://www.openstreetmap.org/search?query="
MONTHS: dict[PageLanguage, Sequence[str]] = {
    "id": ("Jan", "Feb", "Mar", "Apr", "Mei", "Jun", "Jul", "Agu", "Sep", "Okt", "Nov", "Des"),
    "en": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
}
MAX_EVENTS = 50


def build_view(
    company: Company,
    name: str,
    settings: StoredPageSettings,
    shipment: StoredShipment,
    receiver: Party,
    history: Sequence[ShipmentEvent],
    language: PageLanguage,
) -> TrackingView:
    status, zone = shipment.shipping_status, ZoneInfo(company.time_zone)
    place = ", ".join(part for part in (receiver.city, receiver.province) if part)
    return TrackingView(
        shop=settings.display_name or name,
        color=settings.color or DEFAULT_COLOR,
        logo=build_logo(settings),
        headline=get_headline(language, status),
        detail=find_detail(language, status),
        is_problem=status in PROBLEMS,
        steps=build_steps(status, language),
        events=build_events(history, language, zone),
        courier=name_courier(shipment),
        service=shipment.service_name,
        awb=shipment.awb,
        cash=build_cash(shipment, language),
        expected=build_expected(shipment, language, zone),
        city=receiver.city or receiver.province,
        map_url=MAP + quote_plus(place) if place else None,
        live_url=None if status in TERMINAL else shipment.tracking_url,
        zone=name_zone(zone),
        is_test=company.is_test,
    )


def build_cash(shipment: StoredShipment, language: PageLanguage) -> str | None:
    """Until it is delivered or goes back."""
    amount = shipment.cod_amount
    if amount is None or shipment.shipping_status in TERMINAL | {"returning"}:
        return None
    number = f"{amount.normalize():,f}"
    shown = number if language == "en" else number.translate(str.maketrans(",.", ".,"))
    return f"{'Rp' if shipment.currency == 'IDR' else shipment.currency} {shown}"


def build_expected(shipment: StoredShipment, language: PageLanguage, zone: ZoneInfo) -> str | None:
    """While it is on its way: the day of the pickup, and the most days that were quoted."""
    days, picked_up_at = shipment.quoted_days, shipment.picked_up_at
    if days is None or picked_up_at is None or GROUP_OF[shipment.shipping_status] != "in_delivery":
        return None
    return show_day(picked_up_at.astimezone(zone) + timedelta(days=math.ceil(days)), language)


def build_steps(status: str, language: PageLanguage) -> list[PageStep]:
    """None for a cancelled shipment."""
    if status in CANCELLED:
        return []
    present = STAGES.index(STAGE_OF[status])
    return [
        PageStep(get_stage_word(language, stage), n < present or stage == status == "delivered", n == present)
        for n, stage in enumerate(STAGES)
    ]


def build_events(history: Sequence[ShipmentEvent], language: PageLanguage, zone: ZoneInfo) -> list[PageEvent]:
    """Newest first; a status that follows itself is one line."""
    events: list[PageEvent] = []
    for event in history:
        if not event.applied or event.status is None:
            continue
        text = get_headline(language, event.status)
        if not events or events[-1].text != text:
            at = datetime.fromisoformat(event.occurred_at)
            events.append(PageEvent(event.occurred_at, show_time(at.astimezone(zone), language), text))
    return events[::-1][:MAX_EVENTS]


def name_zone(zone: ZoneInfo) -> str:
    """As people call it: WIB, WITA, WIT; else its place."""
    name = datetime.now(zone).tzname() or ""
    return name if name.isalpha() else str(zone)


def show_time(local: datetime, language: PageLanguage) -> str:
    """12 Nov 2026, 09:41; Indonesian writes 09.41."""
    clock = f"{local:%H:%M}" if language == "en" else f"{local:%H.%M}"
    return f"{show_day(local, language)}, {clock}"


def show_day(local: datetime, language: PageLanguage) -> str:
    return f"{local.day} {MONTHS[language][local.month - 1]} {local.year}"


def build_logo(settings: StoredPageSettings) -> str | None:
    if settings.logo is None:
        return None
    return f"data:{settings.logo_type};base64,{b64encode(settings.logo).decode()}"


def choose_ink(color: str) -> str:
    """Black or white, whichever contrasts more: by the relative luminance of WCAG 2."""
    channels = [int(color[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return BLACK if (luminance + 0.05) ** 2 > 0.05 * 1.05 else WHITE
