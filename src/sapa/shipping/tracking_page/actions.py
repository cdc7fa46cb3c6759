"""The settings of a company's tracking pages, and the page of one shipment."""

from base64 import b64decode
from binascii import Error as NotBase64

from sapa.access.actions import get_company, get_environment, read_clock
from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.shipping.areas.actions import with_area_names
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.tracking import actions as tracking
from sapa.shipping.tracking_page import queries
from sapa.shipping.tracking_page.types import (
    MAX_LOGO_BYTES,
    PageLanguage,
    StoredPageSettings,
    TrackingPageSettings,
    TrackingPageSettingsIn,
    TrackingView,
)
from sapa.shipping.tracking_page.view import build_logo, build_view
from sapa.shipping.types import NO_PARTY, read_party
from sapa.values.company import Company

DEFAULTS = StoredPageSettings(None, None, None, None, "id", None)
_STARTS = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", "image/webp": b"RIFF"}


async def get_settings(db: Connection, company: Company) -> TrackingPageSettings:
    return _present(await queries.find_settings(db, company.id) or DEFAULTS)


async def save_settings(tx: Tx, company: Company, body: TrackingPageSettingsIn) -> TrackingPageSettings:
    """Raises Invalid for a logo that is not a picture or too large."""
    logo = None if body.logo is None else parse_logo(body.logo)
    color = body.color and body.color.lower()
    name = body.display_name and " ".join(body.display_name.split())
    now = (await read_clock(tx, company.id)).real
    return _present(await queries.save_settings(tx, company.id, name, color, logo, body.language, now))


def parse_logo(url: str) -> tuple[str, bytes]:
    """The type is read from the bytes, too: a page never shows anything but a picture."""
    head, _, encoded = url.partition(",")
    type = head.removeprefix("data:").removesuffix(";base64")
    try:
        content = b64decode(encoded, validate=True)
    except (NotBase64, ValueError):
        raise Invalid.field("logo", "must be a data URL in base64") from None
    if len(content) > MAX_LOGO_BYTES:
        raise Invalid.field("logo", f"must have at most {MAX_LOGO_BYTES // 1024} KiB; make the picture smaller")
    if not content.startswith(_STARTS[type]):
        raise Invalid.field("logo", f"must be the bytes of a picture of the type {type}")
    return type, content


def _present(stored: StoredPageSettings) -> TrackingPageSettings:
    return TrackingPageSettings(
        stored.display_name, stored.color, build_logo(stored), stored.language, stored.updated_at
    )


async def find_view(
    db: Connection, path: str, language: PageLanguage | None
) -> tuple[TrackingView, PageLanguage] | None:
    """What the page at this path shows; in the company's language unless the reader chose one. None if there is no
    such page."""
    found = await shipments.find_by_tracking_page(db, path)
    if found is None:
        return None
    company_id, shipment = found
    company = await get_company(db, company_id)
    settings = await queries.find_settings(db, company_id) or DEFAULTS
    name = (await get_environment(db, company_id)).name
    receiver = NO_PARTY if shipment.delivery is None else read_party(shipment.delivery)
    receiver = await with_area_names(db, company, shipment, receiver)
    history = await tracking.list_history(db, company_id, shipment.id)
    chosen = language or settings.language
    return build_view(company, name, settings, shipment, receiver, history, chosen), chosen
