"""Bounces: delivery status notifications (RFC 3464), and what servers write that know nothing of them."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from email.utils import parseaddr

from msgspec import Struct

from sapa.messaging.channels.identities import EMAIL
from sapa.messaging.channels.interface import Identity, Item, StatusReport
from sapa.messaging.channels.mail.html_text import MAX_HTML_BYTES, extract_text
from sapa.messaging.channels.mail.mime import MailPart, parse_headers
from sapa.messaging.channels.mail.written import get_domain, list_message_ids

MAX_RECIPIENTS = 100
MAX_TEXT_BYTES = 65_536
MAX_SEARCHED_BYTES = 1_048_576
MAX_REASON_LENGTH = 500

UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
DAEMONS = {"mailer-daemon", "postmaster", "mail-daemon", "mailerdaemon", "maildaemon", "mdaemon"}

_parse_reference = re.compile(rf"<({UUID})@[^>]+>").fullmatch
_STATUS_TYPES = {"message/delivery-status", "message/global-delivery-status"}
_ORIGINAL_TYPES = {"message/rfc822", "message/global", "text/rfc822-headers", "message/rfc822-headers"}

_is_failure_subject = re.compile(
    r"undeliver|non.?deliver|not delivered|delivery.{0,30}(?:fail|problem|error|impossible)|fail.{0,20}deliver"
    r"|returned (?:mail|to sender)|returning message|failure notice|delivery status notification|mail system error"
    r"|delivery notification|could not be delivered|message bounced|address not found|message not delivered"
    r"|unzustellbar|nicht zugestellt|zustellung|non remis|échec de|no se (?:ha podido|pudo) entregar|no entregado"
    r"|mancato recapito|impossibile recapitare|não (?:entregue|pôde)|tidak (?:terkirim|dapat dikirim)|gagal"
    r"|не ?доставлен|недоставлен|не удалось|невозможно доставить|配信|送信できません|退信|投递失败",
    re.IGNORECASE,
).search
_is_failure_text = re.compile(
    r"could not be delivered|couldn't be delivered|wasn't delivered|was not delivered|(?:has|have) failed"
    r"|delivery (?:to the following|failed|failure)|unable to deliver|cannot deliver|undeliverable"
    r"|permanent(?:ly)? (?:error|fail|fatal)|fatal error|user unknown|unknown user"
    r"|no such (?:user|mailbox|recipient|address)"
    r"|mailbox (?:not found|unavailable|is full|full)|does(?: not|n't) exist|address rejected|recipient rejected"
    r"|invalid (?:recipient|mailbox|address)|over ?quota|quota exceeded|giving up|given up|nicht zugestellt"
    r"|konnte nicht|n'a pas pu|no se ha podido|non è stato possibile|não pôde ser|tidak dapat dikirim|gagal dikirim"
    r"|не (?:было|может быть|удалось) доставлен|не существует|недоставлен|переполнен",
    re.IGNORECASE,
).search
_is_delay = re.compile(
    r"delayed|delivery delay|will (?:be retried|retry|continue to (?:try|be tried))|still (?:trying|being retried)"
    r"|not yet (?:been )?delivered|warning(?: only)?: (?:message|could not send|mail)|do not need to resend"
    r"|no action is required|temporary (?:problem|delay)|verzögert|wird weiter versucht|retard|retrasad|ditunda"
    r"|задерж|попытки доставки (?:будут )?продолж",
    re.IGNORECASE,
).search
_is_final = re.compile(
    r"giving up|given up|gave up|last attempt|retry time(?:out| not reached| limit)|expired|too long|maximum time"
    r"|(?:no longer|will not|won't) (?:be )?(?:retr|try)|permanent|fatal",
    re.IGNORECASE,
).search
_find_status = re.compile(r"(?<![\d.])([245]\.[0-9]{1,3}\.[0-9]{1,3})(?![\d.])").search
_find_permanent = re.compile(r"(?<![\d.])(5\.[0-9]{1,3}\.[0-9]{1,3})(?![\d.])").search
_find_reply = re.compile(r"(?<![\d.])(5[0-5][0-9])[ #:-]").search
_find_address = re.compile(r"[^\s<>\"(),:;@]{1,64}@[^\s<>\"(),:;@]{1,253}").findall


class FailedRecipient(Struct, frozen=True):
    recipient: str
    code: str | None
    reason: str


def is_daemon(mail: MailPart) -> bool:
    """Whether a mail server itself wrote it."""
    return _read_address(mail, "From").partition("@")[0] in DAEMONS


def _read_address(mail: MailPart, field: str) -> str:
    try:
        return parseaddr(mail.header(field)[:MAX_REASON_LENGTH])[1].lower()
    except RecursionError:  # nested comments
        return ""


def read_bounce(account: Mapping[str, str], mail: MailPart, at: datetime) -> Sequence[Item] | None:
    """A failed status for each recipient that the mail names as failed. A delayed mail may still arrive. None if it is
    no bounce."""
    if not is_bounce(mail):
        return None
    id = _find_original(account, mail)
    if id is None:  # a person may write from postmaster's address
        return [] if _is_report(mail) else None
    return [_report(id, at, failure) for failure in list_failures(mail)]


def is_bounce(mail: MailPart) -> bool:
    report_type = _find_report_type(mail)
    if report_type is not None:
        return report_type == "delivery-status"
    if _is_report(mail):
        return True
    text = _read_text(mail)
    if is_daemon(mail):
        return bool(_is_failure_subject(mail.header("Subject")) or _is_failure_text(text))
    # A person's automatic reply has no return path either. It has no server's reply code.
    is_nobody = mail.header("Return-Path").strip() == "<>"
    return is_nobody and bool(_find_permanent(text) or _find_reply(text)) and bool(_is_failure_text(text))


def _is_report(mail: MailPart) -> bool:
    return mail.has_header("X-Failed-Recipients") or any(part.type in _STATUS_TYPES for part in mail.walk())


def list_failures(mail: MailPart) -> Sequence[FailedRecipient]:
    blocks = _list_recipients(mail)
    if blocks:
        return [_read_block(block) for block in blocks if _is_failed(block)]
    text = f"{mail.header('Subject')}\n{_read_text(mail)}"
    code = _find_permanent(text) or _find_reply(text)
    if _is_delay(text) and not code and not _is_final(text):
        return []
    found = code or _find_status(text)
    return [FailedRecipient(_read_failed_address(mail, text), found[1] if found else None, _read_reason(text))]


def _report(id: str, at: datetime, failure: FailedRecipient) -> StatusReport:
    found = _parse_reference(id)
    return StatusReport(
        status="failed",
        at=at,
        message_id=id,
        reference=found[1] if found else None,
        recipient=Identity(EMAIL.name, failure.recipient.lower()) if "@" in failure.recipient else None,
        code=failure.code or None,
        reason=failure.reason or "The mail came back.",
    )


def _find_report_type(mail: MailPart) -> str | None:
    kind = mail.fields.get_param("report-type") if mail.type == "multipart/report" else None
    return str(kind).lower() if kind else None


def _list_recipients(mail: MailPart) -> Sequence[Mapping[str, str]]:
    """The recipient blocks of the report; its first block describes the whole mail."""
    blocks = [
        dict(parse_headers(block))
        for part in mail.walk()
        if part.type in _STATUS_TYPES
        for block in re.split(rb"\r?\n[ \t]*\r?\n", part.content(MAX_TEXT_BYTES), maxsplit=MAX_RECIPIENTS)
    ]
    return [block for block in blocks if "action" in block or "final-recipient" in block][:MAX_RECIPIENTS]


def _is_failed(block: Mapping[str, str]) -> bool:
    """Some servers leave out the action."""
    action = block.get("action", "").lower()
    return action.startswith("failed") or (not action and block.get("status", "").startswith("5"))


def _read_block(block: Mapping[str, str]) -> FailedRecipient:
    recipient = _typed(block.get("final-recipient", "")) or _typed(block.get("original-recipient", ""))
    status = _find_status(block.get("status", ""))
    reason = _typed(block.get("diagnostic-code", ""))[:MAX_REASON_LENGTH]
    return FailedRecipient(recipient.strip("<>"), status[1] if status else None, reason)


def _typed(value: str) -> str:
    """The value after the type, as in `smtp; 550 5.1.1 no such user`. Some servers leave out the type."""
    type, semicolon, rest = value.partition(";")
    return (rest if semicolon else type).strip()


def _read_text(mail: MailPart) -> str:
    """What the server wrote for people."""
    for part in mail.walk():
        if part.type == "text/plain" and part.disposition != "attachment":
            return part.text(MAX_TEXT_BYTES)
    for part in mail.walk():
        if part.type == "text/html":
            return extract_text(part.text(MAX_HTML_BYTES))
    return ""


def _read_failed_address(mail: MailPart, text: str) -> str:
    named = mail.header("X-Failed-Recipients").partition(",")[0].strip()
    own = _read_address(mail, "To")
    return named or next((found for found in _find_address(text[:MAX_TEXT_BYTES]) if found.lower() != own), "")


def _read_reason(text: str) -> str:
    """The line with the server's reply, else the first that speaks of a failure."""
    lines = [" ".join(line.split()) for line in text.split("\n")[1:]]
    for is_reason in (_find_permanent, _find_reply, _find_status, _is_failure_text):
        if line := next((line for line in lines if is_reason(line)), None):
            return line[:MAX_REASON_LENGTH]
    return ""


def _find_original(account: Mapping[str, str], mail: MailPart) -> str | None:
    """The Message-ID of the bounced mail: of the attached copy, else one of ours wherever it is, else of the reply
    headers."""
    attached = [part for part in mail.walk() if part.type in _ORIGINAL_TYPES]
    for part in attached:
        headers = parse_headers(re.split(rb"\r?\n\r?\n", part.content(MAX_TEXT_BYTES).lstrip(), maxsplit=1)[0])
        if ids := list_message_ids(dict(reversed(headers)).get("message-id", "")):
            return ids[0]
    if own := _find_own_id(account, mail):
        return own
    replied = mail.header("In-Reply-To") + mail.header("References")
    return next(iter(list_message_ids(replied)), None)


def _find_own_id(account: Mapping[str, str], mail: MailPart) -> str | None:
    """Our Message-ID in the text, in a quoted copy, or in our reply address. That of a header comes first: References
    may name earlier mails of ours."""
    domains = {get_domain(account.get(name) or "").lower() for name in ("address", "inbound_address")} - {""}
    own = rf"({UUID})@(?:{'|'.join(map(re.escape, sorted(domains)))})(?![0-9a-z.-])"
    texts = [mail.mail[:MAX_SEARCHED_BYTES].decode("utf-8", "replace")]
    texts += [part.text(MAX_TEXT_BYTES) for part in mail.walk() if part.has_header("Content-Transfer-Encoding")]
    for pattern in (rf"message-id\W{{1,12}}{own}", own):
        for text in texts:
            if found := re.search(pattern, text.lower()):
                return f"<{found[1]}@{get_domain(account['address'])}>"
    return None
