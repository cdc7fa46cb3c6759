"""Received mail: its text, what it replies to, and whether it is automatic."""

from datetime import UTC, datetime
from email import policy
from email.message import EmailMessage
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapa.messaging.channels.interface import (
    Identity,
    ReceivedItem,
    SenderAuthentication,
    Source,
    StatusReport,
)
from sapa.messaging.channels.mail.adapter import MAIL, sign
from sapa.outbound.client import Client, Unclear
from sapa.values.provider_accounts import BadSignature
from tests import depth
from tests.messaging.channels.accounts import ACCOUNTS, REFERENCE, SECRETS, build_connection

ID = f"<{REFERENCE}@shop.example>"
BUDI = Identity("email", "budi@example.com")
ACCOUNT = ACCOUNTS[Source.MAIL]
AT = datetime(2026, 3, 1, 2, 3, 4, tzinfo=UTC)


def build_mail(body: str = "Terima kasih", **headers: str) -> EmailMessage:
    mail = EmailMessage(policy=policy.SMTP)
    fields = {
        "From": "Budi <Budi@Example.com>",
        "To": "halo@shop.example",
        "Subject": "Re: Pesanan",
        "Message-ID": "<in@example.com>",
        "Date": "Sun, 01 Mar 2026 09:03:04 +0700",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    for name, value in fields.items():
        mail[name] = value
    mail.set_content(body)
    return mail


def read(mail: EmailMessage | bytes, credentials: dict[str, str] | None = None, **headers: str) -> list[Any]:
    body = mail if isinstance(mail, bytes) else mail.as_bytes()
    MAIL.check_callback(credentials or SECRETS, headers, body)
    return list(MAIL.read_callback(ACCOUNT, body))


def test_a_mail_names_what_it_replies_to() -> None:
    mail = build_mail(In_Reply_To="<b@shop.example>", References="<a@shop.example> <b@shop.example>")
    assert read(mail) == [
        ReceivedItem(
            "<in@example.com>",
            [BUDI],
            AT,
            "text",
            "Terima kasih",
            "Budi",
            media=[],
            quoted="<b@shop.example>",
            thread=["<a@shop.example>", "<b@shop.example>", "<in@example.com>"],
            subject="Re: Pesanan",
        )
    ]


@pytest.mark.parametrize("field", ["To", "Cc", "Delivered_To"])
def test_the_reply_address_comes_before_the_headers(field: str) -> None:
    [item] = read(build_mail(**{"In_Reply_To": "<b@shop.example>", field: f"inbox+{REFERENCE}@shop.example"}))
    assert item.quoted == ID


def test_reply_to_does_not_decide_who_the_customer_is() -> None:
    [item] = read(build_mail(From="Mallory <mallory@example.net>", Reply_To="Ayu <ayu@example.com>"))
    assert (item.sender, item.sender_name) == ([Identity("email", "mallory@example.net")], "Mallory")


AUTHORITY = {"authentication_authority": "mx.shop.example"}


def read_checked(results: str, **headers: str) -> Any:
    [item] = MAIL.read_callback(
        {**ACCOUNT, **AUTHORITY}, build_mail(Authentication_Results=results, **headers).as_bytes()
    )
    return item


@pytest.mark.parametrize(
    "results",
    [
        "mx.shop.example; dmarc=pass header.from=shop.example",
        "MX.shop.example 1; spf=fail smtp.mailfrom=other.example; dkim=pass (2048-bit) header.d=shop.example",
        "mx.shop.example; dkim=pass header.i=@mail.shop.example",
        "mx.shop.example; spf=pass (ok; really) smtp.mailfrom=halo@shop.example",
        'mx.shop.example; dmarc=pass header.from="shop.example"',
    ],
)
def test_an_authenticated_message_of_the_company_is_an_echo(results: str) -> None:
    own = {"From": "halo@shop.example", "To": "budi@example.com"}
    item = read_checked(results, **own)
    assert (item.is_echo, item.sender, item.reference) == (True, [BUDI], None)
    sent = read_checked(results, **own, Message_ID=ID)
    assert (sent.is_echo, sent.reference) == (True, REFERENCE)


@pytest.mark.parametrize(
    "results",
    [
        "",
        "mx.shop.example; none",
        "mx.shop.example; dmarc=fail header.from=shop.example",
        "mx.shop.example; dmarc=pass header.from=shop.example.evil.example",
        "mx.shop.example; spf=pass smtp.mailfrom=shop.example; dmarc=fail header.from=shop.example",
        "mx.shop.example; dkim=pass header.d=notshop.example",
        "mx.shop.example; spf=pass smtp.mailfrom=evil.example",
        "mx.shop.example; spf=softfail (dmarc=pass header.from=shop.example) smtp.mailfrom=x",
        'mx.shop.example; spf=pass smtp.mailfrom="x smtp.mailfrom=shop.example"@evil.example',
        'mx.shop.example; spf=none smtp.mailfrom="x;dmarc=pass header.from=shop.example"@evil.example',
        r'mx.shop.example; spf=none smtp.mailfrom="x\";dmarc=pass header.from=shop.example;\""@evil.example',
        'mx.shop.example; spf=pass smtp.mailfrom="("@evil.example; dkim=none (") dmarc=pass header.from=shop.example',
        "mx.shop.example; spf=pass smtp.mailfrom=evil.example smtp.mailfrom=shop.example",
        "mx.evil.example; dmarc=pass header.from=shop.example",
        "mx.shop.example.evil.example; dmarc=pass header.from=shop.example",
    ],
)
def test_a_forged_message_of_the_company_is_not_its_own(results: str) -> None:
    own = {"From": "halo@shop.example", "To": "budi@example.com"}
    item = read_checked(results, **own)
    assert (item.is_echo, item.sender) == (False, [Identity("email", "halo@shop.example")])
    [unchecked] = read(build_mail(Authentication_Results="mx.shop.example; dmarc=pass header.from=shop.example", **own))
    assert (unchecked.is_echo, unchecked.authentication) == (False, None)


def test_a_copy_of_our_own_mail_is_a_report_on_it() -> None:
    [item] = read(build_mail(From="halo@shop.example", To="budi@example.com", Message_ID=ID))
    assert (item.status, item.reference) == ("sent", REFERENCE)


def test_the_checks_of_the_receiving_server_are_kept() -> None:
    item = read_checked("mx.shop.example; spf=pass smtp.mailfrom=example.com; dkim=fail header.d=example.com; arc=pass")
    assert item.authentication == SenderAuthentication("pass", "fail", None)
    several = read_checked("mx.shop.example; dkim=fail header.d=a.example; dkim=pass header.d=b.example; dmarc=none")
    assert several.authentication == SenderAuthentication(None, "pass", "none")
    assert read_checked("mx.other.example; spf=pass").authentication is None


@pytest.mark.parametrize(
    ("headers", "is_automatic"),
    [
        ({}, False),
        ({"Auto_Submitted": "no"}, False),
        ({"Auto_Submitted": "auto-replied"}, True),
        ({"Auto_Submitted": "auto-generated; type=out-of-office"}, True),
        ({"X_Autoreply": "yes"}, True),
        ({"Precedence": "auto_reply"}, True),
        ({"Return_Path": "<>"}, True),
        ({"From": "MAILER-DAEMON@example.com"}, True),
        ({"From": "Postmaster <postmaster@example.com>"}, True),
        ({"X_Auto_Response_Suppress": "All"}, True),
        ({"X_Auto_Response_Suppress": "DR, OOF, AutoReply"}, True),
        ({"Precedence": "bulk"}, True),
        ({"Precedence": "list"}, True),
        ({"List_Id": "News <news.example.com>"}, True),
    ],
)
def test_automatic_mail_is_recognised(headers: dict[str, str], is_automatic: bool) -> None:
    [item] = read(build_mail(**headers))
    assert item.is_automatic is is_automatic


def test_attachments_are_received() -> None:
    mail = build_mail()
    mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="nota.pdf")
    mail.add_attachment(b"\xff\xd8", maintype="image", subtype="jpeg", filename="foto.jpg")
    [item] = read(mail)
    assert [(file.type, file.mime_type, file.filename, file.content) for file in item.media] == [
        ("document", "application/pdf", "nota.pdf", b"%PDF"),
        ("image", "image/jpeg", "foto.jpg", b"\xff\xd8"),
    ]


async def test_an_attachment_needs_no_fetch(client: Client) -> None:
    mail = build_mail()
    mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="nota.pdf")
    [item] = read(mail)
    connection = build_connection(Source.MAIL, "127.0.0.1:9", client)
    assert await MAIL.fetch_media(connection, item.media[0], 100) == ("application/pdf", b"%PDF")
    with pytest.raises(Unclear):
        await MAIL.fetch_media(connection, item.media[0], 3)


def test_a_page_is_read_as_text() -> None:
    mail = build_mail()
    page = "<html><head><style>p{}</style></head><body><p>Halo &amp; <b>terima kasih</b></p><script>x</script></body>"
    mail.set_content(page, subtype="html")
    [item] = read(mail)
    assert item.body == "Halo & terima kasih"


def test_plain_text_comes_before_the_page() -> None:
    mail = build_mail("Halo")
    mail.add_alternative("<p>Other</p>", subtype="html")
    [item] = read(mail)
    assert (item.body, item.media) == ("Halo", [])


BOUNCE = b"""From: MAILER-DAEMON@mail.example
To: halo@shop.example
Subject: Undelivered Mail Returned to Sender
Date: Sun, 01 Mar 2026 02:03:04 +0000
Message-ID: <bounce@mail.example>
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain

I'm sorry.

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mail.example

Final-Recipient: rfc822; Budi@example.com
Action: %(action)s
Status: %(status)s
Diagnostic-Code: smtp; 550 5.1.1 no such
 user

--b
Content-Type: %(type)s

From: halo@shop.example
To: budi@example.com
Message-ID: %(id)s
Subject: Pesanan Anda

--b--
"""


def bounce(action: str = "failed", status: str = "5.1.1", type: str = "message/rfc822", id: str = ID) -> bytes:
    fields = {"action": action, "status": status, "type": type, "id": id}
    return BOUNCE % {name.encode(): value.encode() for name, value in fields.items()}


@pytest.mark.parametrize("type", ["message/rfc822", "text/rfc822-headers"])
@pytest.mark.parametrize("status", ["5.1.1", "4.4.7"])
def test_a_bounced_mail_has_failed(type: str, status: str) -> None:
    assert read(bounce(status=status, type=type)) == [
        StatusReport("failed", AT, ID, REFERENCE, None, BUDI, status, "550 5.1.1 no such user")
    ]


def test_a_receipt_is_an_automatic_mail() -> None:
    receipt = bounce().replace(b"report-type=delivery-status", b"report-type=disposition-notification")
    [item] = read(receipt.replace(b"Auto-Submitted: auto-replied\n", b""))
    assert (item.is_automatic, item.sender) == (True, [Identity("email", "mailer-daemon@mail.example")])


def test_a_delayed_mail_has_not_failed() -> None:
    assert read(bounce(action="delayed", status="4.4.1")) == []


def test_a_bounce_without_a_report_is_recognised() -> None:
    mail = build_mail(X_Failed_Recipients="budi@example.com", In_Reply_To=ID)
    [item] = read(mail)
    assert (item.status, item.message_id, item.recipient) == ("failed", ID, BUDI)


def test_mail_is_signed_where_the_account_says_so() -> None:
    body = build_mail().as_bytes()
    signed = {**SECRETS, "hook_secret": "planted-hook-secret"}
    assert len(read(body)) == 1
    assert len(read(body, signed, **{"x-sapa-signature": sign("planted-hook-secret", body)})) == 1
    for headers in ({}, {"x-sapa-signature": sign("other", body)}, {"x-sapa-signature": "☕"}):
        with pytest.raises(BadSignature):
            read(body, signed, **headers)


@settings(max_examples=depth.examples(100))
@given(
    name=st.sampled_from(["From", "To", "Subject", "Date", "Message-ID", "References", "Content-Type", "Reply-To"]),
    value=st.binary(max_size=60),
    body=st.binary(max_size=100),
)
def test_any_mail_is_read_without_an_exception(name: str, value: bytes, body: bytes) -> None:
    for raw in (
        body,
        build_mail().as_bytes() + body,
        name.encode() + b": " + value + b"\r\n" + build_mail().as_bytes(),
        b"From: a@b\r\n" + name.encode() + b": " + value + b"\r\n\r\n" + body,
        bounce().replace(b"failed", value),
    ):
        for item in read(raw):
            assert "\x00" not in repr(getattr(item, "body", ""))
