"""Submits mail to the company's own server and reports the outcome."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from email.errors import MessageError

from aiosmtplib import SMTP
from aiosmtplib.errors import (
    SMTPAuthenticationError,
    SMTPException,
    SMTPRecipientRefused,
    SMTPResponseException,
)

from sapa.messaging.channels.interface import (
    BadAccount,
    ChannelAccount,
    OutgoingMessage,
    SendDeferral,
    SendReceipt,
    SendRefusal,
)
from sapa.messaging.channels.mail.written import build_mail, build_message_id, get_domain, to_ascii_domain
from sapa.outbound.client import NotSent, Unclear
from sapa.values.provider_refusals import RefusalCategory

SECONDS = 10.0


class NotOffered(Exception):
    """The server lacks a required extension."""


async def submit(connection: ChannelAccount, message: OutgoingMessage) -> SendReceipt | SendRefusal | SendDeferral:
    """Before DATA the server has nothing. After DATA a lost connection leaves the outcome unknown."""
    sender, recipient = connection.account["address"], message.to.value
    try:
        content = build_mail(connection.account, message).as_bytes()
        async with _open(connection) as server:
            await _address(server, to_ascii_domain(sender), to_ascii_domain(recipient))
            if connection.find_objection is not None and (objection := await connection.find_objection()):
                return objection
            await _hand_over(server, content)
    except SMTPResponseException as error:
        return _refuse(error)
    except (SMTPException, OSError) as error:
        raise NotSent(str(error) or type(error).__name__) from error
    except NotOffered as error:
        return SendRefusal("config", str(error), "config")
    except (ValueError, MessageError) as error:
        return SendRefusal("address", f"The mail cannot be addressed: {error}", "recipient")
    return SendReceipt(build_message_id(connection.account, message.reference))


async def verify(connection: ChannelAccount) -> None:
    """Logs in and sends nothing."""
    try:
        async with _open(connection):
            pass
    except (SMTPResponseException, NotOffered) as error:
        raise BadAccount(str(error)) from error
    except (SMTPException, OSError) as error:
        raise NotSent(str(error) or type(error).__name__) from error


@asynccontextmanager
async def _open(connection: ChannelAccount) -> AsyncIterator[SMTP]:
    """Connects, encrypts as the account says, and logs in. A company's server is reached through the guard."""
    host, _, port = connection.address.rpartition(":")
    security = connection.account.get("security") or "starttls"
    sock = await connection.client.dial(host, int(port), is_trusted=connection.is_internal, seconds=SECONDS)
    server = SMTP(
        hostname=host,
        sock=sock,
        use_tls=security == "tls",
        start_tls=False,
        timeout=SECONDS,
        local_hostname=get_domain(to_ascii_domain(connection.account["address"])),
        tls_context=None if security == "plain" else ssl.create_default_context(),
    )
    try:
        await server.connect()
        if security == "starttls":
            await _encrypt(server)
        await _log_in(server, connection.account, connection.credentials)
        yield server
        with suppress(SMTPException, OSError):
            await server.quit()
    finally:
        server.close()
        sock.close()


async def _encrypt(server: SMTP) -> None:
    await server.ehlo()
    if not server.supports_extension("starttls"):
        raise NotOffered("The mail server offers no STARTTLS; connect it with the security it has, tls or plain.")
    await server.starttls()


async def _log_in(server: SMTP, account: Mapping[str, str], credentials: Mapping[str, str]) -> None:
    username, password = account.get("username"), credentials.get("password")
    if username and password:
        await server.login(username, password)


async def _address(server: SMTP, sender: str, recipient: str) -> None:
    """Non-ASCII addresses need a server with SMTPUTF8."""
    if (sender + recipient).isascii():
        await server.mail(sender)
        await server.rcpt(recipient)
        return
    await server.ehlo()
    if not server.supports_extension("smtputf8"):
        raise NotOffered("The mail server takes no addresses with such letters.")
    await server.mail(sender, options=["SMTPUTF8"], encoding="utf-8")
    await server.rcpt(recipient, encoding="utf-8")


async def _hand_over(server: SMTP, content: bytes) -> None:
    try:
        await server.data(content)
    except SMTPResponseException:
        raise
    except (SMTPException, OSError) as error:
        raise Unclear(f"the mail server did not confirm the mail: {error}") from error


def _refuse(error: SMTPResponseException) -> SendRefusal | SendDeferral:
    text = " ".join(error.message.split()) or "the mail server gave no reason"
    if 400 <= error.code < 500:
        return SendDeferral(str(error.code), text)
    return SendRefusal(str(error.code), text, _classify(error))


def _classify(error: SMTPResponseException) -> RefusalCategory:
    if isinstance(error, SMTPAuthenticationError) or error.code in {530, 535}:
        return "auth"
    if error.message.startswith("5.7."):
        return "policy"
    return "recipient" if isinstance(error, SMTPRecipientRefused) or error.code in {550, 551, 553} else "validation"
