"""A company's mail server as a real local server, which accepts, refuses or drops as configured."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage

import trustme
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


class MailServer:
    def __init__(self) -> None:
        self.address = ""
        self.mails: list[EmailMessage] = []
        self.raw: list[bytes] = []
        self.envelopes: list[tuple[str | None, list[str]]] = []
        self.logins: list[tuple[str, str]] = []
        self.encrypted: list[bool] = []
        self.answers = {"MAIL": "250 OK", "RCPT": "250 OK", "DATA": "250 2.0.0 queued", "AUTH": "235 in"}
        """`drop` closes the connection."""

    async def handle_MAIL(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.mail_from = address
        return self._answer(server, "MAIL")

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.rcpt_tos.append(address)
        return self._answer(server, "RCPT")

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        content = envelope.content if isinstance(envelope.content, bytes) else b""
        self.raw.append(content)
        mail = message_from_bytes(content, policy=policy.default)
        self.mails.append(mail)
        self.envelopes.append((envelope.mail_from, envelope.rcpt_tos))
        self.encrypted.append(server.transport is not None and bool(server.transport.get_extra_info("sslcontext")))
        return self._answer(server, "DATA")

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, login: LoginPassword
    ) -> AuthResult:
        self.logins.append((login.login.decode(), login.password.decode()))
        is_in = self.answers["AUTH"].startswith("235")
        return AuthResult(success=is_in, handled=False)

    def _answer(self, server: SMTP, verb: str) -> str:
        if self.answers[verb] == "drop":
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
        return self.answers[verb]


class CertifiedServer(MailServer):
    """With a certificate that a client can trust."""

    def __init__(self) -> None:
        super().__init__()
        self.authority = trustme.CA()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert("127.0.0.1").configure_cert(self.context)


@asynccontextmanager
async def open_mail_server(server: MailServer, security: str = "plain") -> AsyncIterator[MailServer]:
    loop = asyncio.get_running_loop()
    context = server.context if isinstance(server, CertifiedServer) else None

    def serve() -> SMTP:
        return SMTP(
            server,
            hostname="mail.example",
            enable_SMTPUTF8=True,
            auth_require_tls=False,
            authenticator=server.authenticate,
            tls_context=context if security == "starttls" else None,
            loop=loop,
        )

    listening = await loop.create_server(serve, "127.0.0.1", 0, ssl=context if security == "tls" else None)
    host, port = listening.sockets[0].getsockname()[:2]
    server.address = f"{host}:{port}"
    try:
        yield server
    finally:
        listening.close()
