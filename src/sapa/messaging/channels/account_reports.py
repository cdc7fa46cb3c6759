"""What channels report about a company's account: its quality, its limits and warnings."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Struct

from sapa.values.enum_names import EnumName

Quality = Annotated[Literal["GREEN", "YELLOW", "RED"], EnumName("ChannelQuality")]
WarningSeverity = Annotated[Literal["info", "warning", "critical"], EnumName("WarningSeverity")]

NO_LIMIT = 0
HIGH = "HIGH"
"""The throughput of an account that its channel upgraded."""


class AccountWarning(Struct, frozen=True):
    """A channel's warning about an account, or the end of one. A later one with the same code replaces it."""

    code: str
    """The channel's own word."""
    severity: WarningSeverity
    message: str
    expires_at: datetime | None = None
    is_over: bool = False


class AccountReport(Struct, frozen=True, tag=True, tag_field="item"):
    """What a channel thinks of an account. What it does not mention is None."""

    at: datetime
    quality: Quality | None = None
    messaging_limit: int | None = None
    """How many people may get a message outside of a reply window in a day; `NO_LIMIT` if any number."""
    throughput: str | None = None
    warnings: Sequence[AccountWarning] = ()
