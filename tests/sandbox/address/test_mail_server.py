"""The mail server of test environments, called by programs with a library of their own."""

import asyncio
import smtplib
import ssl
from collections.abc import AsyncIterator, Callable
from email.message import EmailMessage
from pathlib import Path

import pytest
import trustme

from sapa.db.pool import Database
from sapa.sandbox.address import mail_server
from sapa.settings import read_settings
from sapa.startup import build_context
from tests.conftest import Installation, free_port
from tests.sandbox.address.outside import Json, OutsideProgram, open_program


class MailServer:
    """The worker's service on a port of its own."""

    def __init__(self, installation: Installation, database: Database, **variables: str) -> None:
        self.port = free_port()
        listen = {"SAPA_SANDBOX_SMTP_LISTEN": f"127.0.0.1:{self.port}"}
        settings = read_settings({"SAPA_SECRET_KEY": installation.server.secret_key, **listen, **variables})
        self.context = build_context(settings, database)
        self.stopping = asyncio.Event()

    async def __aenter__(self) -> "MailServer":
        self.task = asyncio.create_task(mail_server.serve_mail(self.context, self.stopping))
        for _ in range(100):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return self
        raise AssertionError("the mail server does not listen")

    async def __aexit__(self, *_: object) -> None:
        self.stopping.set()
        await self.task
        await self.context.close()

    async def talk(self, conversation: Callable[[smtplib.SMTP], Json]) -> Json:
        def run() -> Json:
            with smtplib.SMTP("127.0.0.1", self.port, timeout=30) as client:
                return conversation(client)

        return await asyncio.to_thread(run)


@pytest.fixture(scope="module")
async def program(installation: Installation, database: Database) -> AsyncIterator[OutsideProgram]:
    async with open_program(installation, database) as opened:
        yield opened


def build_mail(to: str, size: int = 10) -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "toko@shop.example", to, "Pesanan Anda"
    mail["Message-ID"] = "<outside-1@shop.example>"
    mail.set_content("x" * size)
    return mail


def send_to(program: OutsideProgram, to: str, size: int = 10) -> Callable[[smtplib.SMTP], Json]:
    account = program.accounts["MAIL"]

    def send(client: smtplib.SMTP) -> Json:
        client.login(account["account"]["username"], account["credentials"]["password"])
        try:
            refused = client.send_message(build_mail(to, size))
        except smtplib.SMTPResponseException as error:
            return {"code": error.smtp_code, "text": str(error.smtp_error)}
        return {"refused": refused}

    return send


async def test_mail_is_off_by_default(program: OutsideProgram) -> None:
    assert program.accounts["MAIL"]["address"] is None


async def test_mail_is_accepted_and_shown_in_the_outbox(
    installation: Installation, database: Database, program: OutsideProgram
) -> None:
    async with MailServer(installation, database) as server:
        assert await server.talk(send_to(program, "ayu@simulator.test")) == {"refused": {}}
        assert (await server.talk(send_to(program, "tempfail@simulator.test")))["code"] == 451
        assert (await server.talk(send_to(program, "unknown@simulator.test")))["code"] == 550
    outbox = (await program.api.get("/sandbox/outbox")).json()["data"]
    sent = [entry for entry in outbox if entry["source"] == "MAIL"]
    assert [entry["status"] for entry in sent] == [550, 451, 250]
    assert "Pesanan Anda" in sent[-1]["body"]
    assert program.accounts["MAIL"]["credentials"]["password"] not in str(outbox)


async def test_a_password_is_required(installation: Installation, database: Database, program: OutsideProgram) -> None:
    credentials = program.accounts["MAIL"]["credentials"]

    def talk(client: smtplib.SMTP) -> Json:
        client.ehlo()
        without = client.docmd("MAIL", "FROM:<a@shop.example>")[0]
        codes = []
        for name, password in (("shop-1", credentials["password"]), ("x", "y"), ("x", "sbx_1_" + "0" * 32)):
            try:
                client.login(name, password)
            except smtplib.SMTPAuthenticationError as error:
                codes.append(error.smtp_code)
        return {"without": without, "wrong": codes}

    async with MailServer(installation, database) as server:
        assert await server.talk(talk) == {"without": 530, "wrong": [535, 535, 535]}


async def test_a_mail_is_limited_in_size_and_number(installation: Installation, database: Database) -> None:
    async with (
        open_program(installation, database, rate_limit=3) as program,
        MailServer(installation, database) as server,
    ):
        too_large = await server.talk(send_to(program, "ayu@simulator.test", mail_server.MAX_BYTES))
        assert too_large["code"] == 552
        answers = [await server.talk(send_to(program, "ayu@simulator.test")) for _ in range(8)]
        assert 451 in {answer.get("code") for answer in answers}


async def test_with_a_certificate_a_password_needs_encryption(
    installation: Installation, database: Database, program: OutsideProgram, tmp_path: Path
) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    variables = {"SAPA_TLS_CERT": str(certificate), "SAPA_TLS_KEY": str(key)}

    def talk(client: smtplib.SMTP) -> Json:
        client.ehlo()
        is_offered = client.has_extn("auth")
        client.starttls(context=trust)
        return {"plain": is_offered, **send_to(program, "ayu@simulator.test")(client)}

    async with MailServer(installation, database, **variables) as server:
        assert await server.talk(talk) == {"plain": False, "refused": {}}
