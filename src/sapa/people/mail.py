"""Mail with one-time links to users of the console, if the operator has configured a mail server."""

import ssl
from email.errors import MessageError
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from urllib.parse import unquote, urlsplit

import structlog
from aiosmtplib import SMTP
from aiosmtplib.errors import SMTPException
from msgspec import Struct

from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.http.allow_list import get_network
from sapa.people import actions, queries
from sapa.people.mail_texts import TEXTS
from sapa.people.types import Purpose, TooManyAttempts
from sapa.settings import MailSettings

SECONDS = 10.0
WINDOW_SECONDS = 15 * 60
MAX_RESETS = {"account": 3, "network": 20}
"""How many password resets a window allows, per account and per network."""

log = structlog.get_logger()


class OutgoingMail(Struct, frozen=True):
    """A mail with a one-time link."""

    to: str
    name: str
    organisation: str
    purpose: Purpose
    link: str
    language: str

    def __repr__(self) -> str:
        """Without the link, which is secret."""
        return f"OutgoingMail({self.purpose} to {self.to})"


class NoticeMail(Struct, frozen=True):
    """A mail without a secret."""

    to: str
    subject: str
    body: str
    language: str


class NotMailed(Exception):
    """The mail server did not accept the mail; the text says why."""


def is_set_up(context: AppContext) -> bool:
    return context.settings.mail.smtp_url is not None


def build_link(context: AppContext, secret: str) -> str:
    return f"{context.settings.server.address}/console/link/{secret}"


async def send(context: AppContext, mail: OutgoingMail) -> None:
    """Sends a mail through the operator's mail server; raises NotMailed. Never call it in a transaction."""
    texts = TEXTS[mail.language, mail.purpose]
    subject = texts.subject.format(organisation=mail.organisation)
    body = texts.body.format(name=mail.name, organisation=mail.organisation, link=mail.link)
    await send_notice(context, NoticeMail(mail.to, subject, body, mail.language))


async def send_notice(context: AppContext, mail: NoticeMail) -> None:
    """Like `send`, for a mail that is complete already."""
    settings = context.settings.mail
    try:
        await _send(settings, build_message(settings.sender, mail))
    except (SMTPException, OSError, ValueError, MessageError) as error:
        raise NotMailed(" ".join(str(error).split()) or type(error).__name__) from error


async def count_reset_request(database: Database, email: str, address: str) -> None:
    """Counts every request, whether the address belongs to a user or not; raises TooManyAttempts."""
    network = get_network(address)
    subjects = {"account": f"forgotten {actions.fold_email(email)}", "network": f"forgotten from {network}"}
    async with database.transaction() as tx:
        counts = {kind: await queries.count_failure(tx, subjects[kind], WINDOW_SECONDS) for kind in MAX_RESETS}
    if any(counts[kind] > most for kind, most in MAX_RESETS.items()):
        raise TooManyAttempts


async def send_password_reset(context: AppContext, email: str) -> None:
    """Sends a link for a new password if the address belongs to a user. The caller does not learn whether it does."""
    async with context.database.transaction() as tx:
        recipient = await queries.find_recipient(tx, actions.fold_email(email))
        if recipient is None:
            return
        secret = await actions.make_reset_link(tx, recipient.organisation_id, recipient.user_id)
    mail = OutgoingMail(
        recipient.email,
        recipient.name,
        recipient.organisation,
        Purpose.RESET,
        build_link(context, secret),
        recipient.language,
    )
    try:
        await send(context, mail)
    except NotMailed as error:
        log.warning("mail not sent", purpose=mail.purpose, user_id=recipient.user_id, reason=str(error))


def build_message(sender: str, mail: NoticeMail) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"] = sender, mail.to
    message["Subject"] = " ".join(mail.subject.split())
    message["Date"], message["Message-ID"] = formatdate(usegmt=True), make_msgid(domain="sapa.invalid")
    message["Auto-Submitted"] = "auto-generated"
    message["Content-Language"] = mail.language
    message.set_content(mail.body, cte="8bit")
    return message


async def _send(settings: MailSettings, message: EmailMessage) -> None:
    """Uses TLS from the start (smtps) or STARTTLS if the server offers it; a password requires one of them."""
    url = urlsplit(settings.smtp_url or "")
    is_tls = url.scheme == "smtps"
    server = SMTP(
        hostname=url.hostname,
        port=url.port or (465 if is_tls else 587),
        use_tls=is_tls,
        start_tls=True if url.username and not is_tls else None,
        username=unquote(url.username) if url.username else None,
        password=unquote(url.password) if url.password else None,
        timeout=SECONDS,
        tls_context=ssl.create_default_context(),
    )
    async with server:
        await server.send_message(message)
