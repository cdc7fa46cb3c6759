"""What channels decide on templates."""

from msgspec import Struct


class TemplateVerdict(Struct, frozen=True, tag=True, tag_field="item"):
    """The channel's decision on a template. What it does not mention is None."""

    name: str
    language: str
    status: str | None = None
    reason: str | None = None
    quality: str | None = None
    category: str | None = None
    has_new_content: bool = False
    """It was changed at the channel, which does not report its parts in full."""
