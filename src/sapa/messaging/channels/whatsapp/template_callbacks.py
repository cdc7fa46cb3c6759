"""What WhatsApp reports on templates: decisions, ratings, categories, changes."""

from collections.abc import Callable, Iterator, Mapping

from sapa.messaging.channels.interface import Item
from sapa.messaging.channels.reading import Node, text
from sapa.messaging.channels.template_verdicts import TemplateVerdict
from sapa.messaging.channels.whatsapp.template_parsing import parse_category, parse_quality


def _read_status(value: Node) -> Iterator[Item]:
    """A rejection has a reason; a pause or a flag has a title and a description instead."""
    name, language = _read_name(value)
    event = text(value, "event")
    if not (name and language and event):
        return
    words = [text(value, "rejection_info", "reason"), text(value, "rejection_info", "recommendation")]
    other = [text(value, "other_info", "title"), text(value, "other_info", "description")]
    reason = " ".join(word for word in words if word) or text(value, "reason")
    if reason in {None, "NONE"}:
        reason = ": ".join(word for word in other if word) or None
    yield TemplateVerdict(name, language, event, reason)


def _read_quality(value: Node) -> Iterator[Item]:
    name, language = _read_name(value)
    quality = parse_quality(text(value, "new_quality_score"))
    if name and language and quality:
        yield TemplateVerdict(name, language, quality=quality)


def _read_category(value: Node) -> Iterator[Item]:
    """`correct_category` only announces a change; the change itself names the previous category."""
    name, language = _read_name(value)
    category = parse_category(text(value, "new_category"))
    if name and language and category and text(value, "correct_category") is None:
        yield TemplateVerdict(name, language, category=category)


def _read_components(value: Node) -> Iterator[Item]:
    """It has the texts and the buttons, but no header with a file and no cards."""
    name, language = _read_name(value)
    if name and language:
        yield TemplateVerdict(name, language, has_new_content=True)


def _read_name(value: Node) -> tuple[str | None, str | None]:
    return text(value, "message_template_name"), text(value, "message_template_language")


TEMPLATE_FIELDS: Mapping[str, Callable[[Node], Iterator[Item]]] = {
    "message_template_status_update": _read_status,
    "message_template_quality_update": _read_quality,
    "template_category_update": _read_category,
    "message_template_components_update": _read_components,
}
