"""The media in a message's content."""

from collections.abc import Sequence

from msgspec.structs import replace

from sapa.messaging.channels.interface import Content, Media, TemplateCall


def list_media(content: Content) -> list[Media]:
    """The file of a message, or those in the headers of a template and of its cards."""
    match content:
        case Media():
            return [content]
        case TemplateCall(header_media=header, cards=cards):
            return [each for each in (header, *(card.header for card in cards)) if isinstance(each, Media)]
    return []


def replace_media(content: Content, media: Sequence[Media]) -> Content:
    """The content with these in place of what `list_media` lists, in the same order."""
    replacements = iter(media)
    match content:
        case Media():
            return next(replacements)
        case TemplateCall():
            header = next(replacements) if content.header_media else None
            cards = [
                replace(card, header=next(replacements)) if isinstance(card.header, Media) else card
                for card in content.cards
            ]
            return replace(content, header_media=header, cards=cards)
    return content
