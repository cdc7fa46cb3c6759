"""Letters to people of the console, where the operator has set up a mail server. What they hold is a one-time link."""

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
from sapa.people import actions, queries
from sapa.people.mail_texts import WORDS
from sapa.people.types import Purpose, TooManyAttempts
from sapa.settings import MailSettings

SECONDS = 10.0
WINDOW_SECONDS = 15 * 60
MOST_ASKED = {"account": 3, "address": 20}
"""How many new passwords may be asked for in a window, for one account and from one address."""

log = structlog.get_logger()


class OutgoingMail(Struct, frozen=True):
    """What goes to somebody."""

    to: str
    name: str
    organisation: str
    purpose: Purpose
    link: str
    language: str

    def __repr__(self) -> str:
        """Wherever it may be printed: not its link."""
        return f"Letter({self.purpose} to {self.to})"


class NotMailed(Exception):
    """The mail server did not take the letter; the text says why."""


def is_set_up(kit: AppContext) -> bool:
    return kit.settings.mail.smtp_url is not None


def build_link(kit: AppContext, secret: str) -> str:
    return f"{kit.settings.server.address}/console/link/{secret}"


async def send(kit: AppContext, letter: OutgoingMail) -> None:
    """Hands a letter to the operator's mail server; raises NotMailed. Calls the outside: never in a transaction."""
    settings = kit.settings.mail
    try:
        await _hand_over(settings, build_mail(settings.sender, letter))
    except (SMTPException, OSError, ValueError, MessageError) as error:
        raise NotMailed(" ".join(str(error).split()) or type(error).__name__) from error


async def count_forgotten(database: Database, email: str, address: str) -> None:
    """Every question counts, whether anybody is known by the address or not; raises TooManyAttempts."""
    subjects = {"account": f"forgotten {actions.fold_email(email)}", "address": f"forgotten from {address}"}
    async with database.transaction() as tx:
        asked = {kind: await queries.count_failure(tx, subjects[kind], WINDOW_SECONDS) for kind in MOST_ASKED}
    if any(asked[kind] > most for kind, most in MOST_ASKED.items()):
        raise TooManyAttempts


async def send_password_reset(kit: AppContext, email: str) -> None:
    """Sends a link for a new password, if somebody is known by the address. Says nothing of it to whoever asked."""
    async with kit.database.transaction() as tx:
        found = await queries.find_recipient(tx, actions.fold_email(email))
        if found is None:
            return
        secret = await actions.make_reset_link(tx, found.organisation_id, found.user_id)
    letter = OutgoingMail(
        found.email, found.name, found.organisation, Purpose.RESET, build_link(kit, secret), found.language
    )
    try:
        await send(kit, letter)
    except NotMailed as error:
        log.warning("a letter was not mailed", purpose=letter.purpose, user_id=found.user_id, reason=str(error))


def build_mail(sender: str, letter: OutgoingMail) -> EmailMessage:
    words = WORDS[letter.language, letter.purpose]
    mail = EmailMessage()
    mail["From"], mail["To"] = sender, letter.to
    mail["Subject"] = words.subject.format(organisation=" ".join(letter.organisation.split()))
    mail["Date"], mail["Message-ID"] = formatdate(usegmt=True), make_msgid(domain="sapa.invalid")
    mail["Auto-Submitted"] = "auto-generated"
    mail["Content-Language"] = letter.language
    mail.set_content(
        words.body.format(name=letter.name, organisation=letter.organisation, link=letter.link), cte="8bit"
    )
    return mail


async def _hand_over(settings: MailSettings, mail: EmailMessage) -> None:
    """Encrypted from the first byte (smtps), or as soon as the server can; a password goes over nothing else."""
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
        await server.send_message(mail)
