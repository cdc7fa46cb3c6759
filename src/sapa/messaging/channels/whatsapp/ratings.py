"""A number's rating, limits and throughput, which WhatsApp mostly does not call back about."""

import re
from datetime import UTC, datetime
from typing import get_args

from sapa.messaging.channels import meta
from sapa.messaging.channels.account_reports import NO_LIMIT, AccountReport, Quality
from sapa.messaging.channels.interface import ChannelAccount
from sapa.messaging.channels.reading import text

FIELDS = "quality_rating,throughput,whatsapp_business_manager_messaging_limit"
TIERS = {
    "TIER_50": 50, "TIER_250": 250, "TIER_1K": 1_000, "TIER_2K": 2_000, "TIER_10K": 10_000, "TIER_100K": 100_000,
    "TIER_UNLIMITED": NO_LIMIT,
}  # fmt: skip
UNLIMITED = "-1"
LONGEST_WORD = 60
_is_number = re.compile(r"[1-9][0-9]{0,8}", re.ASCII).fullmatch
_QUALITIES = {word: word for word in get_args(get_args(Quality)[0])}


async def read_rating(connection: ChannelAccount) -> AccountReport:
    found = await meta.get_node(connection, connection.account["phone_number_id"], fields=FIELDS)
    return AccountReport(
        at=datetime.now(UTC),
        quality=_QUALITIES.get(text(found, "quality_rating") or ""),
        messaging_limit=parse_limit(text(found, "whatsapp_business_manager_messaging_limit")),
        throughput=shorten(text(found, "throughput", "level")),
    )


def parse_limit(word: str | None) -> int | None:
    """The name of a tier, or a number; None for a word that is not known, such as TIER_NOT_SET."""
    if word == UNLIMITED:
        return NO_LIMIT
    if word is not None and _is_number(word):
        return int(word)
    return TIERS.get(word or "")


def shorten(word: str | None) -> str | None:
    return None if word is None else word[:LONGEST_WORD].upper()
