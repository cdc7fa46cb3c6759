"""Bounces as mail servers write them, in our own words after the real forms: each server's text, and the ways in which
servers refer to the mail that came back."""

from base64 import encodebytes
from collections.abc import Callable, Iterator
from quopri import encodestring

from msgspec import Struct

REFERENCE = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"
EARLIER = "0190a1b2-0000-7000-8000-0c1d2e3f4a5b"
ID = f"<{REFERENCE}@shop.example>"
RECIPIENT = "budi@example.com"

ORIGINAL = f"""Return-Path: <halo@shop.example>
Received: from app.shop.example (app.shop.example [192.0.2.10])
\tby mx.example.com with ESMTPS id 4Yq1xk; Sun, 1 Mar 2026 02:03:01 +0000 (UTC)
From: Toko Kopi <halo@shop.example>
To: {RECIPIENT}
Subject: Pesanan Anda
Date: Sun, 01 Mar 2026 02:03:00 +0000
References: <{EARLIER}@shop.example>
Message-ID: {ID}
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8
"""
BODY = "\nHalo Budi, pesanan Anda sudah dikirim.\n"


class BounceMail(Struct, frozen=True):
    name: str
    content: bytes


def _status(action: str, status: str, diagnostic: str, *, typed: bool = True, more: str = "") -> str:
    kind, how = ("rfc822; ", "smtp; ") if typed else ("rfc822;", "")
    return f"""Reporting-MTA: dns; mx.example.com
Arrival-Date: Sun, 1 Mar 2026 02:03:01 +0000 (UTC)

{more}Final-Recipient: {kind}{RECIPIENT}
Action: {action}
Status: {status}
Diagnostic-Code: {how}{diagnostic}
"""


def _head(sender: str, subject: str, *headers: str) -> str:
    lines = [
        f"From: {sender}",
        "To: halo@shop.example",
        f"Subject: {subject}",
        "Date: Sun, 01 Mar 2026 02:03:04 +0000",
        "Message-ID: <20260301020304.1@mx.example.com>",
        "MIME-Version: 1.0",
        *headers,
    ]
    return "\n".join(lines) + "\n"


def _report(
    sender: str, subject: str, text: str, status: str, original: str, *, quoted: str = "message/rfc822",
    headers: tuple[str, ...] = ("Auto-Submitted: auto-replied",), kind: str = "message/delivery-status",
) -> str:  # fmt: skip
    parts = [f"Content-Type: text/plain; charset=utf-8\n\n{text}\n", f"Content-Type: {kind}\n\n{status}"]
    if original:
        parts.append(f"Content-Type: {quoted}\n\n{original}")
    body = "".join(f"--b1\n{part}\n" for part in parts)
    head = _head(
        sender, subject, *headers, 'Content-Type: multipart/report; report-type=delivery-status; boundary="b1"'
    )
    return f"{head}\nThis is a MIME-encapsulated message.\n\n{body}--b1--\n"


def _plain(sender: str, subject: str, text: str, *headers: str) -> str:
    return f"{_head(sender, subject, *headers, 'Content-Type: text/plain; charset=utf-8')}\n{text}\n"


def _in_base64(sender: str, subject: str, text: str, *headers: str) -> str:
    head = _head(
        sender, subject, *headers, "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: base64"
    )
    return f"{head}\n{encodebytes(text.encode()).decode()}"


def _in_quoted_printable(sender: str, subject: str, text: str, *headers: str) -> str:
    kind = ("Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: quoted-printable")
    return f"{_head(sender, subject, *headers, *kind)}\n{encodestring(text.encode()).decode()}"


def _page(sender: str, subject: str, page: str, *headers: str) -> str:
    return f"{_head(sender, subject, *headers, 'Content-Type: text/html; charset=utf-8')}\n{page}\n"


DAEMON = "Mail Delivery System <MAILER-DAEMON@mx.example.com>"
POSTMASTER = "postmaster@example.com"

NO_USER = "550 5.1.1 <budi@example.com>: Recipient address rejected: User unknown in virtual mailbox table"
REPORT_REASONS = {
    "no user": ("5.1.1", NO_USER),
    "no domain": ("5.1.2", "550 5.1.2 The domain example.com does not exist"),
    "full": ("5.2.2", "552 5.2.2 The email account that you tried to reach is over quota"),
    "policy": ("5.7.1", "550 5.7.1 Message rejected due to local policy. See http://mx.example.com/why/5"),
    "expired": ("4.4.7", "Delivery time expired"),
    "disabled": ("5.2.1", "550 5.2.1 The mailbox budi@example.com is disabled"),
}

REPORTS: dict[str, tuple[str, str, str]] = {
    "postfix": (
        DAEMON,
        "Undelivered Mail Returned to Sender",
        "This is the mail system at host mx.example.com.\n\nI'm sorry to have to inform you that your message "
        "could not\n"
        "be delivered to one or more recipients. It's attached below.\n\n<budi@example.com>: host "
        "mx[192.0.2.1] said: {why}",
    ),
    "sendmail": (
        "Mail Delivery Subsystem <MAILER-DAEMON@mx.example.com>",
        "Returned mail: see transcript for details",
        "The original message was received at Sun, 1 Mar 2026 02:03:01 GMT\nfrom app.shop.example [192.0.2.10]\n\n"
        "   ----- The following addresses had permanent fatal errors -----\n<budi@example.com>\n    (reason: {why})",
    ),
    "gmail": (
        "Mail Delivery Subsystem <mailer-daemon@googlemail.com>",
        "Delivery Status Notification (Failure)",
        "\n** Address not found **\n\nYour message wasn't delivered to budi@example.com because the address "
        "couldn't be\n"
        "found, or is unable to receive mail.\n\nThe response was:\n\n{why}",
    ),
    "exchange": (
        "Microsoft Outlook <MicrosoftExchange329e71ec88ae4615bbc36ab6ce41109e@example.onmicrosoft.com>",
        "Undeliverable: Pesanan Anda",
        "Your message to budi@example.com couldn't be delivered.\n\nbudi wasn't found at example.com.\n\n{why}",
    ),
    "ses": (
        "MAILER-DAEMON@amazonses.com",
        "Delivery Status Notification (Failure)",
        "An error occurred while trying to deliver the mail to the following recipients:\nbudi@example.com",
    ),
    "zoho": (
        "mailer-daemon@mail.zoho.com",
        "Undelivered Mail Returned to Sender",
        "This message was created automatically by mail delivery software.\nA message that you sent could not be "
        "delivered to one or more of its recipients. This is a permanent error.\n\nbudi@example.com, ERROR CODE :{why}",
    ),
    "yahoo": (
        "MAILER-DAEMON@yahoo.com",
        "Failure Notice",
        "Sorry, we were unable to deliver your message to the following address.\n\n<budi@example.com>:\n{why}",
    ),
    "mail.ru": (
        "mailer-daemon@corp.mail.ru",
        "Mail failure.",
        "Это письмо создано автоматически сервером Mail.ru, отвечать на него не нужно.\n\nК сожалению, Ваше письмо не "
        "может быть доставлено одному или нескольким получателям:\n\n{why}",
    ),
    "icloud": (
        "Mail Delivery Subsystem <postmaster@icloud.com>",
        "Undeliverable mail",
        "This report relates to a message you sent. Your message could not be delivered to: budi@example.com\n{why}",
    ),
    "mimecast": (
        "Mimecast <postmaster@example.com>",
        "[Postmaster] Email Delivery Failure",
        "This is a delivery failure notification message indicating that an email you addressed to email address :\n"
        "-- budi@example.com\n\ncould not be delivered. The problem appears to be :\n-- {why}",
    ),
}

TEXTS: dict[str, Callable[[str], str]] = {
    "exim": lambda copy: _plain(
        "Mail Delivery System <Mailer-Daemon@mx.example.com>",
        "Mail delivery failed: returning message to sender",
        "This message was created automatically by mail delivery software.\n\nA message that you sent could not be "
        "delivered to one or more of its\nrecipients. This is a permanent error. The following address(es) failed:\n\n"
        "  budi@example.com\n    host mx.example.com [192.0.2.1]\n    SMTP error from remote mail server after RCPT TO:"
        f"<budi@example.com>:\n    550 5.1.1 User unknown\n\n------ This is a copy of the message, including all the "
        f"headers. ------\n\n{copy}",
        "X-Failed-Recipients: budi@example.com",
        "Auto-Submitted: auto-replied",
    ),
    "exim without its header": lambda copy: _plain(
        "Mail Delivery System <Mailer-Daemon@mx.example.com>",
        "Mail delivery failed: returning message to sender",
        "A message that you sent could not be delivered to all of its recipients.\n\n  budi@example.com\n    "
        "Unrouteable "
        f"address\n\n------ This is a copy of your message, including all the headers. ------\n{copy}",
    ),
    "exim, retry time-out": lambda copy: _plain(
        "Mail Delivery System <Mailer-Daemon@mx.example.com>",
        "Mail delivery failed: returning message to sender",
        "A message that you sent could not be delivered. The following address(es) failed:\n\n  budi@example.com\n    "
        f"retry timeout exceeded\n\n{copy}",
        "X-Failed-Recipients: budi@example.com",
    ),
    "qmail": lambda copy: _plain(
        "MAILER-DAEMON@mx.example.com",
        "failure notice",
        "Hi. This is the qmail-send program at mx.example.com.\nI'm afraid I wasn't able to deliver your "
        "message to the "
        "following addresses.\nThis is a permanent error; I've given up. Sorry it didn't work "
        "out.\n\n<budi@example.com>:\n"
        f"192.0.2.1 does not like recipient.\nRemote host said: 550 no mailbox here by that name\nGiving up on "
        f"192.0.2.1.\n"
        f"\n--- Below this line is a copy of the message.\n\n{copy}",
        "Return-Path: <>",
    ),
    "old gmail": lambda copy: _plain(
        "Mail Delivery Subsystem <mailer-daemon@googlemail.com>",
        "Delivery Status Notification (Failure)",
        "Delivery to the following recipient failed permanently:\n\n     budi@example.com\n\nTechnical details of "
        "permanent failure:\nGoogle tried to deliver your message, but it was rejected by the server for the recipient "
        f"domain example.com. The error that the other server returned was:\n550 5.1.1 unknown user\n\n"
        f"----- Original message -----\n\n{copy}",
        "X-Failed-Recipients: budi@example.com",
        f"In-Reply-To: {ID}",
        f"References: {ID}",
    ),
    "old yahoo": lambda copy: _plain(
        "MAILER-DAEMON@yahoo.com",
        "Delivery failure",
        "Message from yahoo.com.\nUnable to deliver message to the following address(es).\n\n<budi@example.com>:\n"
        f"This user doesn't have a yahoo.com account (budi@example.com) [0]\n\n--- Original message follows.\n\n{copy}",
    ),
    "old exchange": lambda copy: _plain(
        "System Administrator <postmaster@example.com>",
        "Undeliverable: Pesanan Anda",
        "Your message did not reach some or all of the intended recipients.\n\n      Subject:\tPesanan Anda\n\nThe "
        "following recipient(s) could not be reached:\n\n      budi@example.com on 3/1/2026 2:03 AM\n          "
        "  The e-mail "
        f"account does not exist at the organization this message was sent to.\n            <mx.example.com "
        f"#5.1.1>\n\n{copy}",
    ),
    "exchange with details": lambda copy: _in_quoted_printable(
        "Microsoft Outlook <postmaster@example.com>",
        "Undeliverable: Pesanan Anda",
        "Delivery has failed to these recipients or groups:\n\nbudi@example.com\nThe email address you entered "
        "couldn't be "
        "found.\n\nDiagnostic information for administrators:\n\nRemote Server returned '550 5.1.10 "
        f"RESOLVER.ADR.RecipientNotFound; not found'\n\nOriginal message headers:\n\n{copy}",
        "X-MS-Exchange-Message-Is-Ndr:",
    ),
    "exchange page": lambda copy: _page(
        "postmaster@example.onmicrosoft.com",
        "Undeliverable: Pesanan Anda",
        "<html><body><p><b>Your message to budi@example.com couldn't be "
        "delivered.</b></p><table><tr><td>Status code: 550 "
        f"5.1.10</td></tr></table><pre>{copy.replace('<', '&lt;').replace('>', '&gt;')}</pre></body></html>",
        "Return-Path: <>",
    ),
    "mail.ru text": lambda copy: _in_base64(
        "mailer-daemon@mail.ru",
        "=?utf-8?B?0J3QtdC00L7RgdGC0LDQstC70LXQvdC90L7QtSDRgdC+0L7QsdGJ0LXQvdC40LU=?=",
        "Это письмо создано автоматически.\nВаше письмо не может быть доставлено следующим адресатам:\n\n"
        f"budi@example.com\n    такого пользователя не существует\n    550 user not found\n\n{copy}",
    ),
    "yandex": lambda copy: _in_base64(
        "mailer-daemon@yandex.ru",
        "=?utf-8?B?0J3QtdC00L7RgdGC0LDQstC70LXQvdC90L7QtSDRgdC+0L7QsdGJ0LXQvdC40LU=?=",
        "Это письмо отправлено почтовым сервером yandex.ru.\n\nК сожалению, мы вынуждены сообщить Вам о том, "
        "что Ваше письмо "
        f"не может быть отправлено одному или нескольким адресатам.\n\n<budi@example.com>: 550 5.7.1 No such "
        f"user!\n\n{copy}",
    ),
    "gmx": lambda copy: _plain(
        "GMX Mailer Daemon <mailer-daemon@gmx.example>",
        "Mail delivery failed: returning message to sender",
        "Diese Nachricht wurde automatisch erzeugt.\nIhre Nachricht konnte nicht zugestellt "
        "werden.\n\nbudi@example.com:\n"
        f"SMTP error from remote server for RCPT TO command, host: mx.example.com reason: 550 Requested action "
        f"not taken: "
        f"mailbox unavailable\n\n{copy}",
    ),
    "german exchange": lambda copy: _plain(
        "postmaster@example.com",
        "Unzustellbar: Pesanan Anda",
        f"Fehler bei der Nachrichtenzustellung an folgende Empfänger: budi@example.com\nStatuscode: 550 "
        f"5.4.1\n\n{copy}",
    ),
    "french": lambda copy: _plain(
        "postmaster@example.com",
        "Non remis : Pesanan Anda",
        f"Votre message n'a pas pu être remis à budi@example.com.\n#550 5.1.1 RESOLVER.ADR.RecipNotFound#\n\n{copy}",
    ),
    "spanish": lambda copy: _plain(
        "postmaster@example.com",
        "No se puede entregar: Pesanan Anda",
        f"No se ha podido entregar el mensaje a budi@example.com.\n550 5.1.1 usuario desconocido\n\n{copy}",
        "Return-Path: <>",
    ),
    "indonesian": lambda copy: _plain(
        "postmaster@example.co.id",
        "Pesan tidak terkirim: Pesanan Anda",
        f"Pesan Anda tidak dapat dikirim ke budi@example.com karena kotak surat tidak ditemukan. 550 5.1.1\n\n{copy}",
    ),
    "lotus": lambda copy: _plain(
        "Postmaster@example.com",
        "DELIVERY FAILURE: User budi (budi@example.com) not listed in Domino Directory",
        f"Your message\n\n  Subject: Pesanan Anda\n\nwas not delivered to:\n\n  "
        f"budi@example.com\n\nbecause:\n\n  User budi "
        f"(budi@example.com) not listed in Domino Directory\n\n{copy}",
    ),
    "courier": lambda copy: _plain(
        '"Courier mail server at mx.example.com" <postmaster@mx.example.com>',
        "NOTICE: mail delivery status.",
        "This is a delivery status notification from mx.example.com, running the Courier mail server.\n\nThe original "
        "message was received from app.shop.example\n\nUNDELIVERABLE MAIL\n\nYour message to the following "
        "recipients cannot "
        f"be delivered:\n\n<budi@example.com>:\n  >>> RCPT TO:<budi@example.com>\n  <<< 550 User unknown.\n\n{copy}",
    ),
    "groupwise": lambda copy: _plain(
        "Mailer-Daemon@example.com",
        "Message status - undeliverable",
        f"The attached file had the following undeliverable recipient(s):\n\tbudi@example.com\n\nTranscript of session "
        f"follows:\nCommand: RCPT TO:<budi@example.com>\nResponse: 550 no such user\n\n{copy}",
    ),
    "mdaemon": lambda copy: _plain(
        "MDaemon at example.com <MDaemon@example.com>",
        "Permanent Delivery Failure",
        "The following data may contain sections which represent BASE64 encoded file attachments.\n\nThe "
        "attached message had "
        f"PERMANENT fatal delivery errors!\n\nFailed address: budi@example.com\n\n--- Session Transcript "
        f"---\n--> RCPT\n"
        f"<-- 550 <budi@example.com>, Recipient unknown\n\n{copy}",
    ),
    "kerio": lambda copy: _plain(
        "postmaster@example.com",
        "Mail Delivery Problem",
        f"Your message was not delivered to the following recipients:\n\n<budi@example.com>: 554 5.4.14 Hop "
        f"count exceeded\n"
        f"\n{copy}",
    ),
    "full mailbox": lambda copy: _plain(
        "MAILER-DAEMON@mx.example.com",
        "Returned mail: Quota exceeded",
        f"budi@example.com: mailbox is full (over quota), giving up.\n\n{copy}",
    ),
    "japanese": lambda copy: _in_base64(
        "MAILER-DAEMON@mx.example.jp",
        "=?iso-2022-jp?B?GyRCRzs/LiUoJWkhPBsoQg==?= failure notice",
        f"あて先のメールアドレスが見つかりません。\nbudi@example.com\n550 5.1.1 User unknown\n\n{copy}",
    ),
}

DELAYS: dict[str, str] = {
    "postfix delay": _report(
        DAEMON,
        "Delayed Mail (still being retried)",
        "This is the mail system. ####################\n# THIS IS A WARNING ONLY.  YOU DO NOT NEED TO RESEND "
        "YOUR MESSAGE. #\n"
        "Your message could not be delivered for more than 4 hour(s). It will be retried until it is 5 day(s) old.",
        _status("delayed", "4.4.1", "connect to mx.example.com[192.0.2.1]:25: Connection timed out"),
        ORIGINAL,
    ),
    "exim delay": _plain(
        "Mail Delivery System <Mailer-Daemon@mx.example.com>",
        "Warning: message 1kX delayed 24 hours",
        "This message was created automatically by mail delivery software.\nA message that you sent has not yet been "
        "delivered to one or more of its recipients after more than 24 hours.\n\n  budi@example.com\n\nNo "
        "action is required "
        f"on your part. Delivery attempts will continue for some time.\n\n{ORIGINAL}",
        "Auto-Submitted: auto-replied",
    ),
    "gmail delay": _report(
        "Mail Delivery Subsystem <mailer-daemon@googlemail.com>",
        "Delivery Status Notification (Delay)",
        "Delivery incomplete. There was a temporary problem delivering your message to budi@example.com. Gmail "
        "will retry.",
        _status("delayed", "4.4.1", "The recipient server did not accept our requests to connect."),
        ORIGINAL,
    ),
    "sendmail delay": _plain(
        "Mail Delivery Subsystem <MAILER-DAEMON@mx.example.com>",
        "Warning: could not send message for past 4 hours",
        "    **********************************************\n    **      THIS IS A WARNING MESSAGE ONLY      "
        "**\n    **  YOU DO "
        "NOT NEED TO RESEND YOUR MESSAGE  **\n    ****\n   ----- Transcript of session follows "
        "-----\nbudi@example.com... "
        f"Deferred: Connection timed out\nMessage could not be delivered for 4 hours\nMessage will be "
        f"retried\n\n{ORIGINAL}",
    ),
    "exchange delay": _plain(
        "Microsoft Outlook <postmaster@example.com>",
        "Delivery delayed: Pesanan Anda",
        "Delivery is delayed to these recipients or groups:\n\nbudi@example.com\n\nThis message hasn't been "
        "delivered yet. "
        f"Delivery will continue to be attempted.\n\n{ORIGINAL}",
    ),
    "relayed": _report(
        DAEMON,
        "Successful Mail Delivery Report",
        "Your message was successfully delivered to the destination(s) listed below.",
        _status("relayed", "2.1.5", "250 2.1.5 OK"),
        ORIGINAL,
    ),
}


def list_permanent() -> Iterator[BounceMail]:
    for name, (sender, subject, text) in REPORTS.items():
        for reason, (status, why) in REPORT_REASONS.items():
            content = _report(sender, subject, text.format(why=why), _status("failed", status, why), ORIGINAL + BODY)
            yield _build(f"{name}: {reason}", content)
    yield from _list_odd_reports()
    for name, build in TEXTS.items():
        yield _build(f"{name}: with the mail", build(ORIGINAL + BODY))
        yield _build(f"{name}: with its id only", build(f"Message-ID: {ID}\n"))


def _list_odd_reports() -> Iterator[BounceMail]:
    """Reports that bend the rules, as their servers do."""
    sender, subject, text = REPORTS["postfix"]
    said = text.format(why=NO_USER)
    failed = _status("failed", "5.1.1", NO_USER)
    replied = (f"In-Reply-To: {ID}", f"References: <x@shop.example> {ID}")
    odd = {
        "headers only": _report(sender, subject, said, failed, ORIGINAL, quoted="text/rfc822-headers"),
        "no copy, named by the reply headers": _report(sender, subject, said, failed, "", headers=replied),
        "no copy, named in the text": _report(sender, subject, f"{said}\nMessage-ID: {ID}", failed, ""),
        "copy as plain text": _report(sender, subject, said, failed, ORIGINAL, quoted="text/plain"),
        "copy as a file": _report(
            sender, subject, said, failed, ORIGINAL,
            quoted='message/rfc822; name="mail.eml"\nContent-Disposition: attachment',
        ),
        "copy in base64": _report(
            sender, subject, said, failed, encodebytes(ORIGINAL.encode()).decode(),
            quoted="message/rfc822\nContent-Transfer-Encoding: base64",
        ),
        "no types": _report(sender, subject, said, _status("failed", "5.1.1", NO_USER, typed=False), ORIGINAL),
        "no action": _report(sender, subject, said, failed.replace("Action: failed\n", ""), ORIGINAL),
        "action with a comment": _report(sender, subject, said, failed.replace("failed", "failed (bounced)"), ORIGINAL),
        "status with a comment": _report(
            sender, subject, said, failed.replace("5.1.1\n", "5.1.1 (bad mailbox)\n"), ORIGINAL
        ),
        "global": _report(sender, subject, said, failed, ORIGINAL, kind="message/global-delivery-status"),
        "not declared as a report": _report(sender, subject, said, failed, ORIGINAL).replace(
            "multipart/report; report-type=delivery-status;", "multipart/mixed;"
        ),
        "empty status": _report(sender, subject, said, "", ORIGINAL),
        "rewritten id": _report(
            sender, subject, said, failed, f"X-Reply: inbox+{REFERENCE}@shop.example\nSubject: Pesanan Anda\n",
            quoted="text/plain",
        ),
    }  # fmt: skip
    for name, content in odd.items():
        yield _build(f"report: {name}", content)


def list_delays() -> Iterator[BounceMail]:
    for name, content in DELAYS.items():
        yield _build(name, content)


def _build(name: str, content: str) -> BounceMail:
    return BounceMail(name, content.replace("\n", "\r\n").encode())
