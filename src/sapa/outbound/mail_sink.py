"""A mail server on the loopback address, for this process alone: what is sent in the test environment ends here."""

import asyncio
from collections.abc import Awaitable, Callable

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from sapa.values.hook_calls import HookAnswer, HookCall

MOST_BYTES = 32 * 1_048_576
PATH = "/sandbox/mail/"


class MailSink:
    """Starts when its address is first asked for, on a port that the system chooses.

    A mail is handed over like any other call to a simulator: the envelope in its headers, the mail itself as its body.
    The answer's status and text are what the sending side is told.
    """

    def __init__(self, answer: Callable[[HookCall], Awaitable[HookAnswer]]) -> None:
        self._answer = answer
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
            data_size_limit=MOST_BYTES,
            enable_SMTPUTF8=True,
            auth_require_tls=False,
            authenticator=_take_login,
            loop=loop,
        )

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        login = session.auth_data if isinstance(session.auth_data, LoginPassword) else LoginPassword(b"", b"")
        headers = {
            "mail-from": envelope.mail_from or "",
            "rcpt-to": ", ".join(envelope.rcpt_tos),
            "username": login.login.decode("utf-8", "replace"),
            "password": login.password.decode("utf-8", "replace"),
        }
        content = envelope.content if isinstance(envelope.content, bytes) else (envelope.content or "").encode()
        answer = await self._answer(HookCall("MAIL", PATH, {}, headers, content, "127.0.0.1"))
        if answer.status >= 600 or answer.status < 200 or answer.body.startswith(b"{"):
            return "451 4.3.0 The simulator failed"
        return f"{answer.status} {answer.body.decode()}"


def _take_login(server: SMTP, session: Session, envelope: Envelope, mechanism: str, login: LoginPassword) -> AuthResult:
    """Whose it is, the simulator says when the mail is there."""
    return AuthResult(success=True, auth_data=login)
