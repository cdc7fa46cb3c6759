"""The mail server of test environments, for programs outside: it listens on SAPA_SANDBOX_SMTP_LISTEN."""

import asyncio
import ssl

import structlog
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from sapa.context import AppContext
from sapa.http.exchange import new_request_id
from sapa.http.hooks import Hook, answer_hook
from sapa.outbound.mail_sink import build_mail_call, build_reply
from sapa.sandbox.address.quotas import CompanyQuotas
from sapa.sandbox.channels import mail
from sapa.sandbox.channels.accounts import SandboxAccount
from sapa.settings import ServerSettings
from sapa.values.hook_calls import MAIL_PATH

MAX_BYTES = 10 * 1_048_576
MAX_CONNECTIONS = 50
IDLE_SECONDS = 60.0

log = structlog.get_logger()


async def serve_mail(context: AppContext, stopping: asyncio.Event) -> None:
    """Worker service: all workers of a machine share the port."""
    listen = context.settings.sandbox.smtp_listen
    if listen is None:
        await stopping.wait()
        return
    host, port = listen
    loop, receiver = asyncio.get_running_loop(), MailReceiver(context)
    server = await loop.create_server(receiver.open, host, port, reuse_port=True)
    log.info("sandbox mail server started", host=host, port=port)
    try:
        await stopping.wait()
    finally:
        server.close()


class MailReceiver:
    """Accepts mail from callers with the user name and password of a sandbox account."""

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._quotas = CompanyQuotas(context.database)
        self._tls = _load_certificate(context.settings.server)
        self.connections = 0

    def open(self) -> "MailConnection":
        return MailConnection(self, self._tls)

    def sign_in(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, login: LoginPassword
    ) -> AuthResult:
        is_known = isinstance(login, LoginPassword) and self._find_account(login) is not None
        return AuthResult(success=is_known, handled=False, auth_data=login)

    async def handle_MAIL(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Counts the mail before it is read."""
        account = self._find_account(session.auth_data)
        quota = None if account is None else await self._quotas.count(account.company_id)
        if quota is None:
            return "530 5.7.0 Authentication required"
        if not quota.granted:
            return f"451 4.7.1 Too many requests; try again in {quota.reset} seconds"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        peer = session.peer[0] if isinstance(session.peer, tuple) else ""
        call = build_mail_call(session, envelope, str(peer), new_request_id())
        return build_reply(await answer_hook(self._context, [Hook(MAIL_PATH, mail.answer)], call))

    def _find_account(self, login: object) -> SandboxAccount | None:
        if not isinstance(login, LoginPassword):
            return None
        username, password = (part.decode("utf-8", "replace") for part in login)
        return mail.find_caller(self._context, username, password)


class MailConnection(SMTP):
    """One connection; the server holds only so many."""

    def __init__(self, receiver: MailReceiver, tls: ssl.SSLContext | None) -> None:
        super().__init__(
            receiver,
            hostname="simulator.test",
            ident="Sapa sandbox",
            data_size_limit=MAX_BYTES,
            enable_SMTPUTF8=True,
            tls_context=tls,
            auth_require_tls=tls is not None,
            authenticator=receiver.sign_in,
            timeout=IDLE_SECONDS,
            loop=asyncio.get_running_loop(),
        )
        self._receiver = receiver
        self._is_counted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not self._is_counted:  # STARTTLS comes here a second time
            if self._receiver.connections >= MAX_CONNECTIONS and isinstance(transport, asyncio.Transport):
                transport.write(b"421 4.3.2 Too many connections, try again later\r\n")
                transport.close()
                return
            self._receiver.connections += 1
            self._is_counted = True
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self._is_counted:
            self._receiver.connections -= 1
            super().connection_lost(error)


def _load_certificate(server: ServerSettings) -> ssl.SSLContext | None:
    """Of the API. With it, a password is accepted only after STARTTLS."""
    if server.tls_cert is None or server.tls_key is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(server.tls_cert, server.tls_key)
    return context
