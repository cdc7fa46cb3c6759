"""The sources, in the order in which a file is tried against them."""

from collections.abc import Sequence

from sapa.imports.sources import medusa, shopee, shopify, spreadsheet, tokopedia, woocommerce
from sapa.imports.sources.interface import FileProfile
from sapa.imports.tables.files import HeaderRow, find_header
from sapa.imports.tables.types import TableRow
from sapa.imports.types import Resource

PROFILES: list[FileProfile] = [
    *shopify.PROFILES,
    *woocommerce.PROFILES,
    *tokopedia.PROFILES,
    *shopee.PROFILES,
    *medusa.PROFILES,
]

LABELS = {
    shopify.NAME: "Shopify",
    woocommerce.NAME: "WooCommerce",
    tokopedia.NAME: "Tokopedia and TikTok Shop",
    shopee.NAME: "Shopee",
    medusa.NAME: "Medusa",
    spreadsheet.NAME: "a spreadsheet",
}
"""Every source by name, as people call it."""

ALIASES = {"tiktok": tokopedia.NAME}
"""Other names of a source."""


def recognise(rows: Sequence[TableRow]) -> tuple[FileProfile, HeaderRow] | None:
    """The profile whose header stands among the first rows of a file."""
    for profile in PROFILES:
        header = find_header(rows, profile.accepts)
        if header is not None:
            return profile, header
    return None


def find_profile(source: str, resource: Resource) -> FileProfile | None:
    return next((one for one in PROFILES if (one.source, one.resource) == (source, resource)), None)
