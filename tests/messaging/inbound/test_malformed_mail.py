"""Malformed mail is accepted and stored, and does not block other mail."""

from typing import Any

import httpx

from sapa.db.pool import Database
from tests.cli.command import sapa
from tests.conftest import TLS, Installation
from tests.factories import Environments
from tests.http.wire import eventually

ACCOUNT = {"smtp_host": "mail.shop.example", "address": "halo@shop.example"}
CALLBACKS = "SELECT status, error FROM channel_callbacks WHERE company_id = $1 ORDER BY id"
BODIES = "SELECT body FROM messages WHERE company_id = $1 ORDER BY created_at, id"

MALFORMED: list[tuple[str, bytes]] = [
    ("Date: Fri, 31 Dec 9999 23:59:59 -1200", b"late"),
    ("Content-Type: text/plain; charset=idna", b"name of a domain \xff"),
    ("Content-Type: text/plain; charset=punycode", b"caf\xe9"),
    ("Content-Type: text/plain; charset=undefined", b"undefined"),
    ("Content-Type: text/plain; charset=utf-7", b"half of a character: +2AA-"),
    ("Content-Type: text/html", b"<p>Halo</p><![foo[ b"),
    ('Content-Type: image/p\x00ng; name="a.png"', b"picture"),
]


def build_mail(number: int, header: str, body: bytes) -> bytes:
    head = f"From: Ayu <ayu{number}@toko.example>\r\nTo: halo@shop.example\r\nMessage-ID: <{number}@toko.example>\r\n"
    return head.encode() + header.encode() + b"\r\n\r\n" + body


def build_nest(depth: int) -> bytes:
    parts = "".join(f'Content-Type: multipart/mixed; boundary="{n}"\r\n\r\n--{n}\r\n' for n in range(depth))
    return f"From: ayu@toko.example\r\n{parts}\r\nHalo".encode()


async def test_malformed_mail_is_stored_and_blocks_nothing(
    installation: Installation, database: Database, company: Environments
) -> None:
    fields = [part for name, value in ACCOUNT.items() for part in ("--set", f"{name}={value}")]
    command = [
        "channel",
        "connect",
        "--company",
        str(company.live),
        "--source",
        "MAIL",
        "--no-check",
        "--json",
        *fields,
    ]
    address = "/hooks/" + sapa(installation.data, *command).json()["hookUrl"].partition("/hooks/")[2]
    mails = [build_nest(1500), *(build_mail(number, *malformed) for number, malformed in enumerate(MALFORMED))]
    mails.append(build_mail(99, "Subject: Kopi", b"The last one"))
    async with httpx.AsyncClient(base_url=installation.address, timeout=120, verify=TLS) as client:
        for mail in mails:
            answer = await client.post(address, content=mail, headers={"content-type": "message/rfc822"})
            assert answer.status_code == 200, mail[:200]

    async def settle() -> list[Any] | None:
        async with database.connection() as db:
            rows = await db.fetch(CALLBACKS, company.live)
        return rows if len(rows) == len(mails) and all(row["status"] != "waiting" for row in rows) else None

    assert {row["status"] for row in await eventually(settle)} == {"done"}
    async with database.connection() as db:
        bodies = [row["body"] for row in await db.fetch(BODIES, company.live)]
    assert len(bodies) == len(mails)
    assert {"late", "Halo", "half of a character: ?", "The last one"} <= set(bodies)
