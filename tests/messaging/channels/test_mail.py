"""Mail over real SMTP."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sapa.messaging.channels.files import MailAttachment
from sapa.messaging.channels.interface import (
    BadAccount,
    Content,
    Identity,
    Media,
    OutgoingMessage,
    SendDeferral,
    SendReceipt,
    SendRefusal,
    Source,
    Text,
)
from sapa.messaging.channels.mail.adapter import MAIL
from sapa.outbound.client import Client, NotSent, Unclear
from sapa.outbound.http_client import HttpClient
from sapa.settings import WebhookSettings
from sapa.values.company import Company
from tests.messaging.channels.accounts import LIVE, REFERENCE, SECRETS, build_connection
from tests.messaging.channels.contents import CONTENTS, PICTURE
from tests.messaging.channels.mail_server import CertifiedServer, MailServer, open_mail_server

ID = f"<{REFERENCE}@shop.example>"
BUDI = Identity("email", "budi@example.com")


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    async with open_mail_server(MailServer()) as opened:
        yield opened


async def send(
    server: MailServer, client: Client, content: Content | None = None, to: str = BUDI.value, **more: Any
) -> SendReceipt | SendRefusal | SendDeferral:
    account, find_objection = more.pop("account", {}), more.pop("find_objection", None)
    connection = build_connection(Source.MAIL, server.address, client, more.pop("company", LIVE), **account)
    connection = replace(connection, find_objection=find_objection)
    return await MAIL.send(
        connection, OutgoingMessage(REFERENCE, Identity("email", to), content or CONTENTS["text"], **more)
    )


async def test_a_mail_that_may_not_go_any_more_is_not_handed_over(server: MailServer, client: Client) -> None:
    """It is asked after the connection is open and the recipient is accepted, which may take long."""
    objection = SendRefusal("CONSENT_MISSING", "They unsubscribed.", "consent")
    logins: list[tuple[str, str]] = []

    async def find_objection() -> SendRefusal:
        logins.extend(server.logins)
        return objection

    assert await send(server, client, find_objection=find_objection) == objection
    assert (len(logins), server.mails) == (1, [])


async def test_a_mail_has_headers_and_both_bodies(server: MailServer, client: Client) -> None:
    thread = ["<a@example.com>", "<b@example.com>"]
    assert await send(server, client, thread=thread, quoted="<b@example.com>") == SendReceipt(ID)
    [mail] = server.mails
    assert server.envelopes == [("halo@shop.example", ["budi@example.com"])]
    assert server.logins == [("halo", SECRETS["password"])]
    expected = {
        "From": "Toko Kopi <halo@shop.example>",
        "To": "budi@example.com",
        "Subject": "Pesanan Anda",
        "Message-ID": ID,
        "In-Reply-To": "<b@example.com>",
        "References": "<a@example.com> <b@example.com>",
        "Reply-To": f"inbox+{REFERENCE}@shop.example",
        "Auto-Submitted": None,
    }
    assert {name: mail[name] and str(mail[name]) for name in expected} == expected
    assert mail["Date"].datetime.tzinfo is not None
    plain, page = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert page is not None
    assert plain.get_content().strip() == "Halo ☕"
    assert "<p>Halo ☕</p>" in page.get_content()
    assert server.raw[0].isascii()


async def test_automatic_mail_says_so(server: MailServer, client: Client) -> None:
    await send(server, client, is_automatic=True, account={"inbound_address": ""})
    assert server.mails[0]["Auto-Submitted"] == "auto-replied"
    assert server.mails[0]["Reply-To"] is None


@pytest.mark.parametrize(
    ("kind", "words", "page"),
    [
        ("image", f"Kopi Gayo\n\n{PICTURE}", f'<p>Kopi Gayo</p><p><a href="{PICTURE}">'),
        ("document", "Nota\n\nhttps://shop.example/nota.pdf", ">nota.pdf</a>"),
        ("template", f"Halo Budi, INV-1 dikirim.\n\n{PICTURE}", "<p>Halo Budi, INV-1 dikirim.</p>"),
        (
            "buttons",
            "INV-1\n\nSudah sampai?\n\n1. Ya\n2. Belum\n\nToko Kopi",
            f'<a href="mailto:inbox+{REFERENCE}@shop.example?subject=Re%3A%20INV-1%20Sudah',
        ),
        ("list", "Pilih kopi\n\n1. Gayo: Aceh\n2. Toraja\n3. Teh", ">Gayo: Aceh</a>"),
        (
            "link",
            "Lacak pesanan\n\nLacak: https://shop.example/t/1?a=b&c=d",
            '<a href="https://shop.example/t/1?a=b&amp;c=d">Lacak</a>',
        ),
    ],
)
async def test_every_kind_can_be_read(kind: str, words: str, page: str, server: MailServer, client: Client) -> None:
    assert await send(server, client, CONTENTS[kind]) == SendReceipt(ID)
    plain, html = server.mails[0].get_body(("plain",)), server.mails[0].get_body(("html",))
    assert plain is not None
    assert html is not None
    assert plain.get_content().strip().replace("\r\n", "\n") == words
    assert page in html.get_content()


async def test_input_cannot_inject_headers_or_markup(server: MailServer, client: Client) -> None:
    """Input cannot inject a header, a tag or the end of a mail."""
    body = "<script>x</script>\n.\nQUIT\n\n.."
    await send(server, client, Text(body, subject="A\r\nBcc: other@example.com"), quoted="<x>\r\nBcc: y@example.com")
    [mail] = server.mails
    assert mail["Bcc"] is None
    assert mail["In-Reply-To"] is None
    assert mail["Subject"] == "A Bcc: other@example.com"
    plain, page = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert page is not None
    assert plain.get_content().strip().splitlines() == body.splitlines()
    assert "&lt;script&gt;" in page.get_content()


@pytest.mark.parametrize(
    ("verb", "answer", "category"),
    [
        ("RCPT", "550 5.1.1 no such user", "recipient"),
        ("MAIL", "552 5.3.4 too large", "validation"),
        ("DATA", "554 5.7.1 looks like spam", "policy"),
        ("AUTH", "no", "auth"),
    ],
)
async def test_a_rejection_by_the_server_is_a_refusal(
    verb: str, answer: str, category: str, server: MailServer, client: Client
) -> None:
    server.answers[verb] = answer
    refused = await send(server, client)
    assert isinstance(refused, SendRefusal)
    assert (refused.category, refused.retry_after) == (category, None)
    if verb != "AUTH":
        assert f"{refused.code} {refused.reason}" == answer
    assert SECRETS["password"] not in refused.reason


@pytest.mark.parametrize(
    ("verb", "answer"),
    [("MAIL", "421 4.3.2 shutting down"), ("RCPT", "451 4.7.1 greylisted"), ("DATA", "452 4.3.1 full")],
)
async def test_a_temporary_rejection_is_a_deferral(verb: str, answer: str, server: MailServer, client: Client) -> None:
    server.answers[verb] = answer
    deferred = await send(server, client)
    assert isinstance(deferred, SendDeferral)
    assert f"{deferred.code} {deferred.reason}" == answer


async def test_a_file_that_we_hold_is_attached(server: MailServer, client: Client) -> None:
    files = [
        MailAttachment("nota.pdf", "application/pdf", b"%PDF"),
        MailAttachment("foto ☕.jpg", "image/jpeg", b"\xff\xd8"),
    ]
    await send(server, client, Media("document", "https://sapa.example/media/x", "Nota Anda"), attachments=files)
    [mail] = server.mails
    attached = [(part.get_filename(), part.get_content_type(), part.get_content()) for part in mail.iter_attachments()]
    assert attached == [(file.filename, file.mime_type, file.content) for file in files]
    plain, page = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert page is not None
    assert plain.get_content().strip() == "Nota Anda"
    assert "sapa.example" not in page.get_content()


@pytest.mark.parametrize(("verb", "failure"), [("MAIL", NotSent), ("RCPT", NotSent), ("DATA", Unclear)])
async def test_a_lost_connection_is_certain_only_before_data(
    verb: str, failure: type[Exception], server: MailServer, client: Client
) -> None:
    server.answers[verb] = "drop"
    with pytest.raises(failure) as lost:
        await send(server, client)
    assert SECRETS["password"] not in str(lost.value)


async def test_an_unreachable_server_raises_not_sent(client: Client) -> None:
    server = MailServer()
    server.address = "127.0.0.1:9"
    with pytest.raises(NotSent):
        await send(server, client)


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_mail_is_encrypted_as_the_account_says(
    security: str, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = CertifiedServer()
    async with open_mail_server(server, security):
        with pytest.raises(NotSent):
            await send(server, client, account={"security": security})
        assert server.logins == []
        trusted = tmp_path / "authority.pem"
        server.authority.cert_pem.write_to_path(trusted)
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        assert await send(server, client, account={"security": security}) == SendReceipt(ID)
    assert server.encrypted == [True]


async def test_a_password_is_never_sent_in_the_clear_where_tls_is_asked_for(server: MailServer, client: Client) -> None:
    refused = await send(server, client, account={"security": "starttls"})
    assert isinstance(refused, SendRefusal)
    assert refused.category == "config"
    assert (server.logins, server.mails) == ([], [])


async def test_a_live_companys_server_is_reached_through_the_guard(server: MailServer) -> None:
    """The test environment's own server is not: it is ours."""
    guarded = HttpClient(WebhookSettings(allow_insecure=False, allowed_networks=()))
    with pytest.raises(NotSent, match="may not reach"):
        await send(server, guarded)
    assert await send(server, guarded, company=Company(8, "test", "ID", "IDR")) == SendReceipt(ID)
    await guarded.close()


async def test_an_account_is_verified_without_sending_mail(server: MailServer, client: Client) -> None:
    connection = build_connection(Source.MAIL, server.address, client)
    await MAIL.verify(connection)
    assert (len(server.logins), server.mails) == (1, [])
    server.answers["AUTH"] = "no"
    with pytest.raises(BadAccount):
        await MAIL.verify(connection)


@pytest.mark.parametrize("to", ["büdi@example.com", "budi@münchen.example"])
async def test_addresses_may_have_non_ascii_characters(to: str, server: MailServer, client: Client) -> None:
    assert await send(server, client, to=to) == SendReceipt(ID)
    assert server.envelopes[0][1] == [to.replace("münchen", "xn--mnchen-3ya")]
