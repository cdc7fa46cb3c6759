"""A mail server on the loopback address for this process only: it receives the mail of the test environment."""

import asyncio
from collections.abc import Awaitable, Callable

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from sapa.values.hook_calls import MAIL_PATH, HookAnswer, HookCall

MAX_BYTES = 32 * 1_048_576


class MailSink:
    """Starts when its address is first needed, on a port that the system chooses.

    A mail is passed on like any other call to a simulator: the envelope in its headers, the mail itself as its body.
    The sender gets the status and the text of the response.
    """

    def __init__(self, response: Callable[[HookCall], Awaitable[HookAnswer]]) -> None:
        self._answer = response
        self._starting = asyncio.Lock()
        self._server: asyncio.Server | None = None
        self._address = ""

    async def address(self) -> str:
        """For example 127.0.0.1:49153."""
        async with self._starting:
            if self._server is None:
                await self._start()
        return self._address

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: self._serve(loop), "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        self._address = f"{host}:{port}"

    def _serve(self, loop: asyncio.AbstractEventLoop) -> SMTP:
        return SMTP(
            self,
            hostname="simulator.test",
            ident="Sapa sandbox",
            data_size_limit=MAX_BYTES,
            enable_SMTPUTF8=True,
            auth_require_tls=False,
            authenticator=_accept_login,
            loop=loop,
        )

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        return build_reply(await self._answer(build_mail_call(session, envelope, "127.0.0.1")))


def build_mail_call(session: Session, envelope: Envelope, address: str, request_id: str | None = None) -> HookCall:
    login = session.auth_data if isinstance(session.auth_data, LoginPassword) else LoginPassword(b"", b"")
    headers = {
        "mail-from": envelope.mail_from or "",
        "rcpt-to": ", ".join(envelope.rcpt_tos),
        "username": login.login.decode("utf-8", "replace"),
        "password": login.password.decode("utf-8", "replace"),
    }
    content = envelope.content if isinstance(envelope.content, bytes) else (envelope.content or "").encode()
    return HookCall("MAIL", MAIL_PATH, {}, headers, content, address, request_id)


def build_reply(response: HookAnswer) -> str:
    if response.status >= 600 or response.status < 200 or response.body.startswith(b"{"):
        return "451 4.3.0 The simulator failed"
    return f"{response.status} {response.body.decode()}"


def _accept_login(
    server: SMTP, session: Session, envelope: Envelope, mechanism: str, login: LoginPassword
) -> AuthResult:
    """Accepts any login: the simulator checks it when the mail arrives."""
    return AuthResult(success=True, auth_data=login)
