"""The public tracking page: how it looks, and what it shows."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.http.responses import Timestamp
from sapa.values.enum_names import EnumName

PageLanguage = Annotated[Literal["id", "en"], EnumName("Language")]

MAX_LOGO_BYTES = 20 * 1024

DOT = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="
)
"""A picture of one pixel."""

DisplayName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=60,
        pattern=r"\S",
        examples=["Toko Kopi"],
        description="The company's name unless given.",
    ),
]
Color = Annotated[
    str, Meta(pattern="^#[0-9A-Fa-f]{6}$", examples=["#0f766e"], description="The band on top, as #rrggbb.")
]
Logo = Annotated[
    str,
    Meta(
        max_length=40_000,
        pattern="^data:image/(png|jpeg|webp);base64,",
        examples=[DOT],
        description="A PNG, JPEG or WebP picture of at most 20 KiB, as a data URL.",
    ),
]


class TrackingPageSettingsIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How the pages look. What is left out or null gets its default."""

    display_name: DisplayName | None = None
    color: Color | None = None
    logo: Logo | None = None
    language: Annotated[PageLanguage, Meta(description="For readers whose browser asks for neither.")] = "id"


class TrackingPageSettings(Struct, frozen=True, rename="camel"):
    """How the company's public tracking pages look."""

    display_name: DisplayName | None
    color: Color | None
    logo: Logo | None
    language: PageLanguage
    updated_at: Timestamp | None


class StoredPageSettings(Struct, frozen=True):
    """A row of tracking_page_settings."""

    display_name: str | None
    color: str | None
    logo: bytes | None
    logo_type: str | None
    language: PageLanguage
    updated_at: str | None


class PageStep(Struct, frozen=True):
    """One of the stages that every parcel goes through."""

    name: str
    is_done: bool
    is_present: bool


class PageEvent(Struct, frozen=True):
    """A line of the history: when and what, without the carrier's own words, which may name people."""

    at: str
    """RFC 3339, for programs."""
    time: str
    """In local time, for people."""
    text: str


class TrackingView(Struct, frozen=True, kw_only=True):
    """All that the page shows. It has no ids of ours, no names, phone numbers or streets."""

    shop: str
    color: str
    logo: str | None
    headline: str
    detail: str | None
    is_problem: bool
    steps: Sequence[PageStep]
    events: Sequence[PageEvent]
    courier: str
    service: str | None
    awb: str | None
    cash: str | None
    """What the reader has to pay the courier."""
    expected: str | None
    """The day by which it is delivered, as the carrier quoted it."""
    city: str | None
    map_url: str | None
    live_url: str | None
    zone: str
    is_test: bool
