"""Bounces of many servers: permanent failures are recorded, delays are not.

SAPA_BOUNCE_CORPUS is a folder of bounces from elsewhere (`*.eml`, all of permanent failures) to measure as well.
"""

import os
from pathlib import Path

import pytest

from sapa.messaging.channels.interface import Identity, ReceivedItem, Source, StatusReport
from sapa.messaging.channels.mail.adapter import MAIL
from sapa.messaging.channels.mail.bounces import MAX_RECIPIENTS, is_bounce, list_failures
from sapa.messaging.channels.mail.mime import parse_mail
from tests.messaging.channels.accounts import ACCOUNTS
from tests.messaging.channels.bounce_mails import RECIPIENT, REFERENCE, BounceMail, list_delays, list_permanent

ACCOUNT = ACCOUNTS[Source.MAIL]
PERMANENT = list(list_permanent())
CORPUS = os.environ.get("SAPA_BOUNCE_CORPUS")


def is_recorded(mail: BounceMail) -> bool:
    items = MAIL.read_callback(ACCOUNT, mail.content)
    return bool(items) and all(
        isinstance(item, StatusReport) and (item.status, item.reference) == ("failed", REFERENCE) for item in items
    )


def test_permanent_failures_are_recorded() -> None:
    missed = [mail.name for mail in PERMANENT if not is_recorded(mail)]
    assert len(PERMANENT) >= 100
    assert len(missed) <= len(PERMANENT) // 10, missed


def test_the_recipient_and_the_reason_are_found() -> None:
    reports = [item for mail in PERMANENT for item in MAIL.read_callback(ACCOUNT, mail.content)]
    known = [
        item for item in reports if isinstance(item, StatusReport) and item.recipient == Identity("email", RECIPIENT)
    ]
    reasons = [item for item in reports if isinstance(item, StatusReport) and item.reason != "The mail came back."]
    assert min(len(known), len(reasons)) >= 0.9 * len(PERMANENT)


@pytest.mark.parametrize("mail", list(list_delays()), ids=lambda mail: mail.name)
def test_a_delay_is_not_a_failure(mail: BounceMail) -> None:
    assert not any(isinstance(item, StatusReport) for item in MAIL.read_callback(ACCOUNT, mail.content))


@pytest.mark.parametrize(
    ("sender", "subject", "text"),
    [
        ("budi@example.com", "Automatic reply: Delivery problem with order 12", "I am on holiday until Monday."),
        ("budi@example.com", "Out of office", "My old mailbox does not exist any more. Write to budi2@example.com."),
    ],
)
def test_the_automatic_reply_of_a_person_is_not_a_bounce(sender: str, subject: str, text: str) -> None:
    mail = f"""Return-Path: <>
From: Budi <{sender}>
To: halo@shop.example
Subject: {subject}
Auto-Submitted: auto-replied
In-Reply-To: <{REFERENCE}@shop.example>

{text}
"""
    [item] = MAIL.read_callback(ACCOUNT, mail.encode())
    assert isinstance(item, ReceivedItem)
    assert item.is_automatic


def test_what_a_person_writes_from_the_postmasters_address_is_kept() -> None:
    mail = """From: Ibu Sri <postmaster@tiny.example>
To: halo@shop.example
Subject: My parcel was not delivered

Where is my order 77?
"""
    [item] = MAIL.read_callback(ACCOUNT, mail.encode())
    assert isinstance(item, ReceivedItem)


def test_the_recipients_of_all_reports_in_a_mail_are_limited() -> None:
    block = "action: failed\nfinal-recipient: rfc822; a@example.com\n\n"
    reports = f"--b\nContent-Type: message/delivery-status\n\n{block * 90}\n" * 5
    mail = f"""From: mailer-daemon@example.com
Content-Type: multipart/report; report-type=delivery-status; boundary=b

{reports}--b
Content-Type: message/rfc822

Message-ID: <{REFERENCE}@shop.example>

--b--
"""
    assert len(MAIL.read_callback(ACCOUNT, mail.encode())) == MAX_RECIPIENTS


def test_a_customers_mail_that_quotes_ours_is_not_a_bounce() -> None:
    mail = f"""From: Budi <{RECIPIENT}>
To: halo@shop.example
Subject: Delivery failure?
In-Reply-To: <{REFERENCE}@shop.example>

The parcel was not delivered. 550 5.1.1
> Message-ID: <{REFERENCE}@shop.example>
"""
    [item] = MAIL.read_callback(ACCOUNT, mail.encode())
    assert isinstance(item, ReceivedItem)
    assert not item.is_automatic


@pytest.mark.skipif(not CORPUS, reason="SAPA_BOUNCE_CORPUS is not set")
def test_the_bounces_of_a_corpus_are_recognised() -> None:
    mails = {path.name: parse_mail(path.read_bytes()) for path in Path(CORPUS or "").rglob("*.eml")}
    missed = [name for name, mail in mails.items() if not (is_bounce(mail) and list_failures(mail))]
    assert len(missed) <= len(mails) // 10, missed
