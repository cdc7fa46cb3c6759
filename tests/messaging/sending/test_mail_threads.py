"""Replies to mail: mail programs show them in the customer's thread."""

from email import message_from_string, policy
from email.message import EmailMessage
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.messaging.sending.preflight import build_subject
from tests.factories import Environments
from tests.messaging.conversation_steps import (
    get_message,
    read_outbox,
    send,
    settled,
    simulate_inbound,
    wait_for_inbound,
)
from tests.messaging.send_steps import BUTTONS, make_template

AYU = "ayu@simulator.test"


async def write(client: httpx.AsyncClient, subject: str, **fields: Any) -> str:
    """Ayu writes; returns the Message-ID."""
    inbound = await simulate_inbound(client, source="MAIL", text="Halo", subject=subject, **{"from": AYU}, **fields)
    return str(inbound["messageId"])


async def read_mail(client: httpx.AsyncClient) -> EmailMessage:
    """The last mail that the server received."""
    newest = (await read_outbox(client))[0]
    return message_from_string(newest["body"], policy=policy.default)


def list_headers(mail: EmailMessage) -> tuple[str | None, ...]:
    return tuple(mail[name] and str(mail[name]) for name in ("Subject", "In-Reply-To", "References"))


async def test_a_mail_to_a_customer_who_wrote_is_a_reply(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    first = await write(sandbox, "Pesanan 7")
    await wait_for_inbound(database, company.test)
    sent = (await send(sandbox, AYU, "MAIL")).json()["data"]
    assert list_headers(await read_mail(sandbox)) == ("Re: Pesanan 7", first, first)
    assert (sent["subject"], (await get_message(sandbox, sent["messageId2"]))["subject"]) == ("Re: Pesanan 7",) * 2

    second = await write(sandbox, "RE: Re: Pesanan 7", quoted=sent["messageId"])
    await wait_for_inbound(database, company.test, 2)
    path, body = "/messages/send-interactive", {"to": AYU, "sources": "MAIL", "interactive": BUTTONS}
    assert (await sandbox.post(path, json=body)).status_code == 200
    answer = ("Re: Pesanan 7", second, f"{sent['messageId']} {second}")
    assert list_headers(await read_mail(sandbox)) == answer

    await send(sandbox, AYU, "MAIL", subject="Nota")
    assert list_headers(await read_mail(sandbox)) == ("Nota", *answer[1:])


async def test_a_first_mail_and_a_template_are_no_replies(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await send(sandbox, "budi@simulator.test", "MAIL")
    assert list_headers(await read_mail(sandbox)) == ("Halo", None, None)
    await send(sandbox, "ooo@simulator.test", "MAIL")
    await wait_for_inbound(database, company.test)
    await send(sandbox, "ooo@simulator.test", "MAIL")
    assert list_headers(await read_mail(sandbox)) == ("Halo", None, None)

    await write(sandbox, "Pesanan 7")
    await wait_for_inbound(database, company.test, 2)
    await make_template(sandbox, body="Promo kopi", category="MARKETING")
    body = {"to": AYU, "sources": "MAIL", "template_name": "order_update"}
    assert (await sandbox.post("/messages/send-template", json=body)).status_code == 200
    assert list_headers(await read_mail(sandbox)) == ("Promo kopi", None, None)


async def test_a_reply_finds_a_mail_without_a_stored_outcome(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """As after a crash: the mail server accepted the mail, and only our own id is known."""
    sent = (await send(sandbox, AYU, "MAIL")).json()["data"]
    async with database.connection() as db:
        await db.execute(
            "UPDATE messages SET provider_id = NULL, status = 'pending', accepted_at = NULL, sent_at = NULL"
            " WHERE company_id = $1",
            company.test,
        )
    await write(sandbox, "Re: Halo", quoted=sent["messageId"])
    answered = await settled(sandbox, sent["messageId2"], {"repliedAt"})
    assert (answered["status"], answered["sentAt"] is not None) == ("delivered", True)


@pytest.mark.parametrize(
    ("subject", "answer"),
    [
        ("Pesanan 7", "Re: Pesanan 7"),
        ("Re: Pesanan 7", "Re: Pesanan 7"),
        ("AW: re : RE[2]: Pesanan 7", "Re: Pesanan 7"),
        ("Bls: Pesanan", "Re: Pesanan"),
        ("Retur: sepatu", "Re: Retur: sepatu"),
        ("Re:", None),
        ("", None),
        (None, None),
        ("x" * 600, "Re: " + "x" * 496),
    ],
)
def test_a_subject_is_marked_as_an_answer_once(subject: str | None, answer: str | None) -> None:
    assert build_subject(subject) == answer
