"""Builds a message as mail: headers, plain text and HTML."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email import policy
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from html import escape
from posixpath import basename
from urllib.parse import quote, urlsplit

from sapa.messaging.channels.interface import (
    Buttons,
    Choices,
    LinkButton,
    Media,
    OutgoingMessage,
    TemplateCall,
    Text,
)
from sapa.messaging.channels.render import describe, list_rows, paragraphs, render

POLICY = policy.SMTP.clone(cte_type="7bit", raise_on_defect=False)
MAX_REFERENCES = 20
MAX_SUBJECT_LENGTH = 78
UNSUBSCRIBE = "UNSUBSCRIBE"
"""The subject of a mail that unsubscribes, one of the words that people can write."""
LABELS = {"id": "Berhenti berlangganan", "en": "Unsubscribe"}

_is_message_id = re.compile(r"<[^<>\s]{1,900}>").fullmatch


def build_message_id(account: Mapping[str, str], reference: str) -> str:
    return f"<{reference}@{get_domain(account['address'])}>"


def build_mail(account: Mapping[str, str], message: OutgoingMessage) -> EmailMessage:
    is_plain = (account["address"].rpartition("@")[0] + message.to.value.rpartition("@")[0]).isascii()
    mail = EmailMessage(policy=POLICY.clone(utf8=not is_plain))
    mail["From"] = _build_address(account["address"], _plain(account.get("sender_name") or ""))
    mail["To"] = _build_address(message.to.value)
    mail["Subject"] = build_subject(message)
    mail["Date"] = format_datetime(datetime.now(UTC))
    mail["Message-ID"] = build_message_id(account, message.reference)
    for name, value in _thread(message).items():
        mail[name] = value
    if (reply_to := build_reply_address(account, message.reference)) is not None:
        mail["Reply-To"] = _build_address(reply_to)
    if message.is_automatic:
        mail["Auto-Submitted"] = "auto-replied"
    for name, value in _unsubscribe(account, message).items():
        mail[name] = value
    mail.set_content(_build_text(message) + "\n")
    mail.add_alternative(_build_page(account, message), subtype="html")
    for file in message.attachments:
        maintype, _, subtype = file.mime_type.partition("/")
        mail.add_attachment(file.content, maintype=maintype, subtype=subtype, filename=file.filename)
    return mail


def _build_address(address: str, name: str = "") -> Address:
    local, _, domain = to_ascii_domain(address).rpartition("@")
    return Address(name, local, domain)


def to_ascii_domain(address: str) -> str:
    """The address with its domain in ASCII; raises UnicodeError if that is not possible."""
    local, _, domain = address.rpartition("@")
    return f"{local}@{domain.encode('idna').decode()}"


def build_reply_address(account: Mapping[str, str], reference: str) -> str | None:
    """An address with the message's id in it, so that a reply without a quotation is matched. Only for accounts with an
    inbound address."""
    local, _, domain = (account.get("inbound_address") or "").rpartition("@")
    return f"{local}+{reference}@{domain}" if local else None


def build_subject(message: OutgoingMessage) -> str:
    """The message's subject, else the thread's, else the beginning of its text, or a file's name."""
    content = message.content
    own = (content.subject if isinstance(content, Text | TemplateCall) else None) or message.subject
    text = _plain(own or (_name_file(content) if isinstance(content, Media) else render(content)))
    return text if own or len(text) <= MAX_SUBJECT_LENGTH else text[: MAX_SUBJECT_LENGTH - 1].rstrip() + "…"


def _name_file(media: Media) -> str:
    return media.caption or media.filename or basename(urlsplit(media.url).path) or media.url


def get_domain(address: str) -> str:
    return address.rpartition("@")[2]


def _thread(message: OutgoingMessage) -> dict[str, str]:
    quoted = [message.quoted] if message.quoted else []
    references = [id for id in dict.fromkeys([*message.thread, *quoted]) if _is_message_id(id)][-MAX_REFERENCES:]
    if not references:
        return {}
    answered = message.quoted if message.quoted in references else references[-1]
    return {"In-Reply-To": str(answered), "References": " ".join(references)}


def _unsubscribe(account: Mapping[str, str], message: OutgoingMessage) -> dict[str, str]:
    """The headers of RFC 2369 and RFC 8058, by which mail programs offer a button."""
    if message.unsubscribe_url is None:
        return {}
    ways = [f"<{message.unsubscribe_url}>"]
    if (reply_to := build_reply_address(account, message.reference)) is not None:
        ways.append(f"<mailto:{quote(reply_to, safe='@+')}?subject={UNSUBSCRIBE}>")
    return {"List-Unsubscribe": ", ".join(ways), "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}


def _build_text(message: OutgoingMessage) -> str:
    content = message.content
    if isinstance(content, Media) and message.attachments:
        return content.caption or ""
    text = render(content)
    return f"{text}\n\n{_get_label(message)}: {message.unsubscribe_url}" if message.unsubscribe_url else text


def _build_page(account: Mapping[str, str], message: OutgoingMessage) -> str:
    link = _link(message.unsubscribe_url, _get_label(message)) if message.unsubscribe_url else ""
    return f"<!doctype html>\n<html><body>\n{_build_body(account, message)}{link}\n</body></html>\n"


def _get_label(message: OutgoingMessage) -> str:
    """In the template's language: only templates are marketing messages."""
    language = message.content.language if isinstance(message.content, TemplateCall) else ""
    return LABELS["en" if language.startswith("en") else "id"]


def _build_body(account: Mapping[str, str], message: OutgoingMessage) -> str:
    content = message.content
    match content:
        case LinkButton():
            return _paragraphs(content.body) + _link(content.url, content.display_text)
        case Media() if message.attachments:
            return _paragraphs(content.caption)
        case Media():
            return _paragraphs(content.caption) + _link(content.url, content.filename or content.url)
        case TemplateCall(header_media=Media(url=url)):
            return _link(url, url) + _paragraphs(content.rendered)
        case Buttons() | Choices():
            chosen = "".join(_choice(account, message, row.title, describe(row)) for row in list_rows(content))
            return _paragraphs(content.header, content.body) + chosen + _paragraphs(content.footer)
        case _:
            return _paragraphs(render(content))


def _choice(account: Mapping[str, str], message: OutgoingMessage, title: str, text: str) -> str:
    """A link that opens a prepared reply."""
    address = build_reply_address(account, message.reference) or account["address"]
    subject = quote(f"Re: {build_subject(message).removeprefix('Re: ')}")
    return _link(f"mailto:{quote(address, safe='@+')}?subject={subject}&body={quote(title)}", text)


def _paragraphs(*parts: str | None) -> str:
    written = escape(paragraphs(*parts)).split("\n\n")
    return "".join(f"<p>{part.replace(chr(10), '<br>')}</p>" for part in written if part)


def _link(url: str, text: str) -> str:
    return f'<p><a href="{escape(url)}">{escape(text)}</a></p>'


def _plain(text: str) -> str:
    """On one line: a line break would end the header."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def list_message_ids(text: str) -> Sequence[str]:
    return [id for id in re.findall(r"<[^<>\s]{1,900}>", text) if id]
