"""Parses received mail: its text, what it replies to, and whether it is automatic."""

import email
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email import policy
from email.message import EmailMessage, Message
from email.utils import getaddresses, parsedate_to_datetime
from hashlib import sha256
from html.parser import HTMLParser

from sapa.messaging.channels.identities import EMAIL
from sapa.messaging.channels.interface import (
    Identity,
    InboundMedia,
    Item,
    ReceivedItem,
)
from sapa.messaging.channels.mail.bounces import is_bounce, read_bounce
from sapa.messaging.channels.mail.written import MAX_REFERENCES, get_domain, list_message_ids

MAX_ATTACHMENTS = 50
MAX_BODY_LENGTH = 200_000

_ADDRESSED = ("To", "Cc", "Delivered-To", "X-Original-To", "Envelope-To")
_KINDS = {"image", "audio", "video"}
_BREAKS = {"p", "br", "div", "li", "tr", "h1", "h2", "h3"}
_SILENT = {"style", "script", "head", "title"}
_is_ours = re.compile(r"<([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})@[^<>\s]+>").fullmatch
_find_reference = re.compile(r"\+([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})@").search


def parse_callback(account: Mapping[str, str], body: bytes) -> Sequence[Item]:
    mail = email.message_from_bytes(body, policy=policy.default)
    if is_bounce(mail):
        return read_bounce(mail, read_date(mail))
    message = _read_message(account, mail, body)
    return [message] if message else []


def _read_message(account: Mapping[str, str], mail: EmailMessage, body: bytes) -> ReceivedItem | None:
    name, sender = _read_sender(mail)
    if not sender:
        return None
    is_echo = sender == account["address"].lower()
    customer = next(iter(_list_addresses(mail, "To")), "") if is_echo else sender
    if not customer:
        return None
    main, quoted = _find_body(mail), _find_quoted(account, mail)
    return ReceivedItem(
        message_id=_find_id(mail) or f"<{sha256(body).hexdigest()}@unnamed>",
        sender=[Identity(EMAIL.name, customer)],
        at=read_date(mail),
        type="text",
        body=_read_text(main)[:MAX_BODY_LENGTH] if main else None,
        sender_name=None if is_echo else name or None,
        media=_list_attachments(mail, main),
        quoted=quoted,
        quoted_reference=_parse_reference(quoted),
        is_echo=is_echo,
        reference=_parse_reference(_find_id(mail)) if is_echo else None,
        is_automatic=is_automatic(mail),
        thread=list_thread(mail),
        subject=header(mail, "Subject") or None,
    )


def header(mail: Message, name: str) -> str:
    """The header as one line of text. A header that cannot be decoded is returned raw."""
    try:
        value = mail.get(name)
    except Exception:
        value = next((raw for key, raw in mail.raw_items() if key.lower() == name.lower()), "")
    return clean(" ".join(str(value or "").split()))


def read_date(mail: Message) -> datetime:
    try:
        date = parsedate_to_datetime(header(mail, "Date"))
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return datetime.now(UTC)


def is_automatic(mail: Message) -> bool:
    """Whether a machine sent it, such as a receipt. Nobody expects a reply."""
    submitted = header(mail, "Auto-Submitted").partition(";")[0].strip().lower()
    return (
        submitted not in {"", "no"}
        or header(mail, "X-Autoreply").lower() == "yes"
        or header(mail, "Precedence").lower() == "auto_reply"
        or header(mail, "Return-Path") == "<>"
        or mail.get_content_type() == "multipart/report"
    )


def list_thread(mail: Message) -> Sequence[str]:
    """The Message-IDs of the thread, oldest first, including this mail."""
    references = header(mail, "References") + header(mail, "In-Reply-To") + header(mail, "Message-ID")
    return list(dict.fromkeys(list_message_ids(references)))[-MAX_REFERENCES:]


def _find_quoted(account: Mapping[str, str], mail: Message) -> str | None:
    """The message named by our reply address, else the one in In-Reply-To."""
    for name in _ADDRESSED:
        if found := _find_reference(header(mail, name).lower()):
            return f"<{found[1]}@{get_domain(account['address'])}>"
    answered = list_message_ids(header(mail, "In-Reply-To")) or list_message_ids(header(mail, "References"))[-1:]
    return answered[0] if answered else None


def _parse_reference(message_id: str | None) -> str | None:
    """The Message-ID of our own mail holds our message id, so a mail is recognised before the server has responded."""
    found = _is_ours(message_id or "")
    return found[1] if found else None


def _find_id(mail: Message) -> str | None:
    return next(iter(list_message_ids(header(mail, "Message-ID"))), None)


def _read_sender(mail: Message) -> tuple[str, str]:
    """The address to reply to: a contact form's mail has its author in Reply-To."""
    for field in ("Reply-To", "From"):
        for name, address in getaddresses([header(mail, field)]):
            if "@" in address:
                return name, address.lower()
    return "", ""


def _list_addresses(mail: Message, field: str) -> Sequence[str]:
    return [address.lower() for _, address in getaddresses([header(mail, field)]) if "@" in address]


def _find_body(mail: EmailMessage) -> EmailMessage | None:
    try:
        found = mail.get_body(preferencelist=("plain", "html"))
    except Exception:
        return None
    return found if isinstance(found, EmailMessage) else None


def _read_text(part: EmailMessage) -> str:
    content = part.get_payload(decode=True)
    raw = content if isinstance(content, bytes) else b""
    text = _decode(raw, part.get_content_charset())
    return (_strip_tags(text) if part.get_content_type() == "text/html" else text).replace("\r\n", "\n").strip()


def _decode(raw: bytes, charset: str | None) -> str:
    try:
        text = raw.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):  # unknown, or not usable here, such as `idna`
        text = raw.decode("utf-8", "replace")
    return clean(text)


def clean(text: str) -> str:
    """Drops NUL characters and lone surrogates, which the database cannot store."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def _list_attachments(mail: EmailMessage, main: EmailMessage | None) -> Sequence[InboundMedia]:
    found = [part for part in mail.walk() if part is not main and _is_attached(part)]
    return [_read_attachment(part) for part in found[:MAX_ATTACHMENTS]]


def _is_attached(part: Message) -> bool:
    is_named = bool(_find_filename(part)) or part.get_content_disposition() == "attachment"
    return not part.is_multipart() and (is_named or part.get_content_maintype() in _KINDS)


def _read_attachment(part: Message) -> InboundMedia:
    content = part.get_payload(decode=True)
    kind = part.get_content_maintype()
    return InboundMedia(
        type=kind if kind in _KINDS else "document",
        mime_type=clean(part.get_content_type()),
        filename=_find_filename(part),
        content=content if isinstance(content, bytes) else b"",
    )


def _find_filename(part: Message) -> str | None:
    try:
        name = part.get_filename()
    except Exception:
        return None
    return "".join(char for char in clean(str(name)) if char.isprintable()) or None if name else None


class _TextExtractor(HTMLParser):
    """The text of an HTML page."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in _SILENT
        if tag in _BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(0, self._silent - (tag in _SILENT))

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(re.sub(r"\s+", " ", data))


def _strip_tags(page: str) -> str:
    reader = _TextExtractor()
    with suppress(AssertionError):  # HTMLParser raises AssertionError on malformed markup: the text up to there counts
        reader.feed(page)
        reader.close()
    return re.sub(r"\n{3,}", "\n\n", re.sub(r" *\n *", "\n", "".join(reader.parts)))
