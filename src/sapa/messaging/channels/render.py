"""Message contents as plain text, for channels that cannot carry them natively."""

from collections.abc import Sequence

from sapa.messaging.channels.content_media import list_media
from sapa.messaging.channels.interface import (
    Buttons,
    Choices,
    Content,
    LinkButton,
    ListRow,
    Media,
    TemplateCall,
    Text,
)
from sapa.messaging.channels.native_contents import (
    FlowButton,
    LocationRequest,
    ProductCard,
    ProductChoices,
)


def render(content: Content) -> str:
    """The full text; choices are numbered."""
    match content:
        case Text(body=body):
            return body
        case TemplateCall():
            return paragraphs(content.rendered, *_list_links(content))
        case Media():
            return paragraphs(content.caption, content.url)
        case LinkButton():
            return paragraphs(content.body, f"{content.display_text}: {content.url}")
        case Buttons() | Choices():
            return paragraphs(content.header, content.body, _numbered(content), content.footer)
        case FlowButton() | ProductCard() | ProductChoices() | LocationRequest():
            return content.body or ""


def _list_links(template: TemplateCall) -> Sequence[str]:
    """The files that the text does not name: of the header, and those of cards that we hold."""
    return [media.url for media in list_media(template) if media is template.header_media or media.file_id]


def render_without_choices(content: Buttons | Choices) -> str:
    """The text beside native buttons. Buttons have no descriptions, so the text includes them."""
    rows = list_rows(content)
    described = "\n".join(describe(row) for row in rows) if any(row.description for row in rows) else None
    return paragraphs(content.header, content.body, described, content.footer)


def paragraphs(*parts: str | None) -> str:
    return "\n\n".join(part for part in parts if part)


def list_rows(content: Buttons | Choices) -> Sequence[ListRow]:
    """The choices of all sections."""
    if isinstance(content, Buttons):
        return [ListRow(button.id, button.title) for button in content.buttons]
    return [row for section in content.sections for row in section.rows]


def describe(row: ListRow) -> str:
    return f"{row.title}: {row.description}" if row.description else row.title


def _numbered(content: Buttons | Choices) -> str:
    return "\n".join(f"{number}. {describe(row)}" for number, row in enumerate(list_rows(content), 1))
