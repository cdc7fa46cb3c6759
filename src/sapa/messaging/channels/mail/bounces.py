"""Bounces: delivery status notifications (RFC 3464)."""

import email
import re
from collections.abc import Sequence
from datetime import datetime
from email.message import Message

from sapa.messaging.channels.identities import EMAIL
from sapa.messaging.channels.interface import Identity, Item, StatusReport
from sapa.messaging.channels.mail.written import list_message_ids

_parse_reference = re.compile(r"<([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})@[^>]+>").fullmatch


def is_bounce(mail: Message) -> bool:
    return _is_report(mail) or mail.get("X-Failed-Recipients") is not None


def read_bounce(mail: Message, at: datetime) -> Sequence[Item]:
    """A failed status for each recipient that the report names as failed. A delayed mail may still arrive."""
    id = _find_original(mail)
    if id is None:
        return []
    if not _is_report(mail):
        return [_report(id, at, str(mail.get("X-Failed-Recipients")), None, "The mail came back.")]
    return [
        _report(id, at, _typed(part, "Final-Recipient"), _word(part, "Status"), _typed(part, "Diagnostic-Code"))
        for part in _list_recipients(mail)
        if _word(part, "Action").lower() == "failed"
    ]


def _report(id: str, at: datetime, recipient: str, code: str | None, reason: str) -> StatusReport:
    found = _parse_reference(id)
    return StatusReport(
        status="failed",
        at=at,
        message_id=id,
        reference=found[1] if found else None,
        recipient=Identity(EMAIL.name, recipient.lower()) if "@" in recipient else None,
        code=code or None,
        reason=reason or "The mail came back.",
    )


def _is_report(mail: Message) -> bool:
    kind = mail.get_param("report-type") if mail.get_content_type() == "multipart/report" else None
    return str(kind or "").lower() == "delivery-status"


def _list_recipients(mail: Message) -> Sequence[Message]:
    """The recipient blocks of the report; its first block describes the whole mail."""
    return [
        block
        for part in mail.walk()
        if part.get_content_type() == "message/delivery-status" and isinstance(blocks := part.get_payload(), list)
        for block in blocks
        if isinstance(block, Message) and block.get("Action") is not None
    ]


def _find_original(mail: Message) -> str | None:
    """The Message-ID of the bounced mail: from the attached copy, else from the reply headers."""
    for part in mail.walk():
        if part is not mail and part.get_content_type() in {"message/rfc822", "text/rfc822-headers"}:
            ids = list_message_ids(str(_open(part).get("Message-ID") or ""))
            if ids:
                return ids[0]
    named = str(mail.get("In-Reply-To") or "") + str(mail.get("References") or "")
    return next(iter(list_message_ids(named)), None)


def _open(part: Message) -> Message:
    inside = part.get_payload()
    if isinstance(inside, list) and inside and isinstance(inside[0], Message):
        return inside[0]
    raw = part.get_payload(decode=True)
    return email.message_from_bytes(raw if isinstance(raw, bytes) else b"")


def _word(part: Message, name: str) -> str:
    return " ".join(str(part.get(name) or "").split())


def _typed(part: Message, name: str) -> str:
    """The value after the type, as in `smtp; 550 5.1.1 no such user`."""
    return _word(part, name).partition(";")[2].strip()
