"""Parses received mail: its text, what it replies to, and whether it is automatic."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import getaddresses, parsedate_to_datetime
from hashlib import sha256

from sapa.messaging.channels.identities import EMAIL
from sapa.messaging.channels.interface import (
    ChannelNotice,
    Identity,
    InboundMedia,
    Item,
    ReceivedItem,
    StatusReport,
)
from sapa.messaging.channels.mail.authentication import is_authentic, list_results, summarise
from sapa.messaging.channels.mail.bounces import UUID, is_daemon, read_bounce
from sapa.messaging.channels.mail.html_text import MAX_HTML_BYTES, extract_text
from sapa.messaging.channels.mail.mime import MailPart, parse_mail
from sapa.messaging.channels.mail.quotations import find_own_text
from sapa.messaging.channels.mail.written import MAX_REFERENCES, get_domain, list_message_ids
from sapa.messaging.channels.notices import assign_keys, build_notice

MAX_ATTACHMENTS = 50
MAX_BODY_LENGTH = 200_000
MAX_SUBJECT_LENGTH = 1_000
MAX_ADDRESSES_LENGTH = 2_000
MAX_DATE_LENGTH = 100

_ADDRESSED = ("To", "Cc", "Delivered-To", "X-Original-To", "Envelope-To")
_KINDS = {"image", "audio", "video"}
_BULK = {"auto_reply", "bulk", "junk", "list"}
_is_ours = re.compile(rf"<({UUID})@[^<>\s]+>").fullmatch
_find_reference = re.compile(rf"\+({UUID})@").search


def parse_callback(account: Mapping[str, str], body: bytes) -> Sequence[Item]:
    mail = parse_mail(body)
    reports = read_bounce(account, mail, read_date(mail))
    if reports is not None:
        return reports
    return assign_keys([_read_message(account, mail, body)], body)


def _read_message(
    account: Mapping[str, str], mail: MailPart, body: bytes
) -> ReceivedItem | StatusReport | ChannelNotice:
    """Who wrote is decided by From alone: anybody can put any address into Reply-To."""
    name, sender = next(iter(_list_addresses(mail, "From")), ("", ""))
    if not sender:
        return _build_notice(mail, "mail without a sender")
    own, own_id = account["address"].lower(), _find_id(mail)
    results = list_results(mail, account.get("authentication_authority") or "")
    is_echo = sender == own and is_authentic(results, get_domain(own))
    if sender == own and not is_echo and (reference := _parse_reference(own_id)):
        return StatusReport("sent", read_date(mail), message_id=own_id, reference=reference)
    customer = next((address for _, address in _list_addresses(mail, "To")), "") if is_echo else sender
    if not customer:
        return _build_notice(mail, "mail without a recipient")
    main, quoted = _find_body(mail), _find_quoted(account, mail)
    text = _read_text(main)[:MAX_BODY_LENGTH] if main else None
    return ReceivedItem(
        message_id=own_id or f"<{sha256(body).hexdigest()}@unnamed>",
        sender=[Identity(EMAIL.name, customer)],
        at=read_date(mail),
        type="text",
        body=text,
        sender_name=None if is_echo else name or None,
        media=_list_attachments(mail, main),
        quoted=quoted,
        quoted_reference=_parse_reference(quoted),
        is_echo=is_echo,
        reference=_parse_reference(own_id) if is_echo else None,
        is_automatic=is_automatic(mail),
        own_text=find_own_text(text or ""),
        thread=list_thread(mail),
        subject=mail.header("Subject")[:MAX_SUBJECT_LENGTH] or None,
        authentication=summarise(results),
    )


def _build_notice(mail: MailPart, name: str) -> ChannelNotice:
    """A mail that belongs to nobody. The callback has the whole mail."""
    names = ("From", "To", "Subject", "Date", "Message-ID")
    return build_notice("unknown", name, {name: mail.header(name)[:MAX_SUBJECT_LENGTH] for name in names})


def read_date(mail: MailPart) -> datetime:
    try:
        date = parsedate_to_datetime(mail.header("Date")[:MAX_DATE_LENGTH])
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return datetime.now(UTC)


def is_automatic(mail: MailPart) -> bool:
    """Whether a machine sent it, such as a receipt or a newsletter. Nobody expects a reply."""
    submitted = mail.header("Auto-Submitted").partition(";")[0].strip().lower()
    return (
        submitted not in {"", "no"}
        or mail.header("X-Autoreply").lower() == "yes"
        or mail.header("Precedence").lower() in _BULK
        or mail.header("X-Auto-Response-Suppress").lower() not in {"", "none"}
        or mail.has_header("List-Id")
        or mail.header("Return-Path") == "<>"
        or mail.type == "multipart/report"
        or is_daemon(mail)
    )


def list_thread(mail: MailPart) -> Sequence[str]:
    """The Message-IDs of the thread, oldest first, including this mail."""
    references = mail.header("References") + mail.header("In-Reply-To") + mail.header("Message-ID")
    return list(dict.fromkeys(list_message_ids(references)))[-MAX_REFERENCES:]


def _find_quoted(account: Mapping[str, str], mail: MailPart) -> str | None:
    """The message named by our reply address, else the one in In-Reply-To."""
    for name in _ADDRESSED:
        if found := _find_reference(mail.header(name).lower()):
            return f"<{found[1]}@{get_domain(account['address'])}>"
    answered = list_message_ids(mail.header("In-Reply-To")) or list_message_ids(mail.header("References"))[-1:]
    return answered[0] if answered else None


def _parse_reference(message_id: str | None) -> str | None:
    """The Message-ID of our own mail holds our message id, so a mail is recognised before the server has responded."""
    found = _is_ours(message_id or "")
    return found[1] if found else None


def _find_id(mail: MailPart) -> str | None:
    return next(iter(list_message_ids(mail.header("Message-ID"))), None)


def _list_addresses(mail: MailPart, field: str) -> Sequence[tuple[str, str]]:
    """Names and addresses."""
    try:
        found = getaddresses([mail.header(field)[:MAX_ADDRESSES_LENGTH]])
    except RecursionError:  # nested comments
        return []
    return [(name, address.lower()) for name, address in found if "@" in address]


def _find_body(mail: MailPart) -> MailPart | None:
    """The first plain text, else the first page. Of related parts, the first is the page and the others are its
    files."""
    texts = [part for part in _list_bodies(mail) if part.disposition != "attachment"]
    plain = (part for part in texts if part.type == "text/plain")
    return next(plain, next((part for part in texts if part.type == "text/html"), None))


def _list_bodies(part: MailPart) -> Sequence[MailPart]:
    inner = part.parts[:1] if part.type == "multipart/related" else part.parts
    return [part, *(each for child in inner for each in _list_bodies(child))]


def _read_text(part: MailPart) -> str:
    if part.type == "text/html":
        return extract_text(part.text(MAX_HTML_BYTES))
    return part.text(4 * MAX_BODY_LENGTH).replace("\r\n", "\n").strip()


def _list_attachments(mail: MailPart, main: MailPart | None) -> Sequence[InboundMedia]:
    found = [part for part in mail.walk() if part is not main and _is_attached(part)]
    return [_read_attachment(part) for part in found[:MAX_ATTACHMENTS]]


def _is_attached(part: MailPart) -> bool:
    kind = part.type.partition("/")[0]
    is_named = bool(part.filename) or part.disposition == "attachment"
    return kind != "multipart" and (is_named or kind in _KINDS or part.type == "message/rfc822")


def _read_attachment(part: MailPart) -> InboundMedia:
    kind = part.type.partition("/")[0]
    return InboundMedia(
        type=kind if kind in _KINDS else "document",
        mime_type=part.type,
        filename=part.filename,
        content=part.content(),
    )
