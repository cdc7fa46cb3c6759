"""Simulates mail servers: accepts mail over SMTP, and bounces, answers or delays it."""

from datetime import datetime
from email import message_from_bytes, policy
from email.headerregistry import Address
from email.message import EmailMessage, Message
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.utils import format_datetime, make_msgid, parseaddr

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.http.hooks import Hook
from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels.accounts import SandboxAccount, find_account, sign
from sapa.sandbox.channels.files import FILES, MIME_TYPES
from sapa.sandbox.channels.inbound import SimulatedInbound
from sapa.sandbox.channels.scripts import ScriptStep, get_script, get_script_name
from sapa.sandbox.channels.simulator import (
    AcceptedMessage,
    ChannelSimulator,
    Post,
    run_script,
)
from sapa.values.hook_calls import MAIL_PATH, HookAnswer, HookCall

SIGNATURE = "x-sapa-signature"
_TEXT = {"content-type": "text/plain"}
_TEMPORARY = {451, 130429}
"""Refusals of scripts after which a retry may succeed."""


async def answer(context: AppContext, call: HookCall) -> HookAnswer:
    """The sender gets the status and the text."""
    account = find_account(context, call.headers.get("password", ""), "password", [Source.MAIL])
    if account is None:
        return HookAnswer(535, b"5.7.8 Authentication credentials invalid", _TEXT)
    mail = message_from_bytes(call.body, policy=policy.default)
    to = call.headers.get("rcpt-to", "").partition(",")[0]
    async with context.database.connection() as db:
        now = (await read_clock(db, account.company_id)).now
    accepted = AcceptedMessage(account, to, str(mail["Message-ID"] or ""), now, is_external=call.is_external)
    return await run_script(
        context, call, accepted, get_script(to),
        accept=lambda accepted: HookAnswer(250, b"2.0.0 OK: queued", _TEXT),
        refuse=lambda code: HookAnswer(451, b"4.7.1 Greylisted, please try again later", _TEXT)
        if code in _TEMPORARY
        else HookAnswer(550, b"5.1.1 No such user here", _TEXT),
        broken=HookAnswer(451, b"4.3.0 Local error in processing", _TEXT),
        build_callback=lambda accepted, step, at: build_callback(accepted, step, at, mail),
    )  # fmt: skip


def find_caller(context: AppContext, username: str, password: str) -> SandboxAccount | None:
    """The password names the company, and the user name has to be its own."""
    account = find_account(context, password, "password", [Source.MAIL])
    return account if account is not None and account.public["username"] == username else None


def build_callback(accepted: AcceptedMessage, step: ScriptStep, at: datetime, mail: EmailMessage) -> Post | None:
    """Mail servers do not report delivery or reading."""
    match step.action:
        case "failed":
            return _post(accepted.account, build_bounce(accepted.account, accepted.to, at, mail))
        case "reply" | "choice":
            is_automatic = get_script_name(accepted.to) == "ooo"
            text = "I am out of the office until Monday." if is_automatic else "OK"
            quoted = accepted.message_id if step.quotes else None
            subject = f"Re: {mail['Subject'] or ''}"
            to = str(mail["Reply-To"] or mail["From"])
            inbound = SimulatedInbound(
                accepted.to, make_msgid(domain="simulator.test"), at, text,
                quoted=quoted, subject=subject, is_automatic=is_automatic,
            )  # fmt: skip
            return build_inbound(accepted.account, inbound, to)
        case _:
            return None


def build_inbound(account: SandboxAccount, inbound: SimulatedInbound, to: str | None = None) -> Post:
    mail = EmailMessage(policy=policy.SMTP)
    mail["From"] = Address(_plain(inbound.name), addr_spec=inbound.sender)
    mail["To"] = to or account.public["address"]
    mail["Subject"] = _plain(inbound.subject) or "A message from the sandbox"
    mail["Date"] = format_datetime(inbound.at)
    mail["Message-ID"] = inbound.message_id
    if quoted := _plain(inbound.quoted):
        mail["In-Reply-To"] = mail["References"] = quoted
    if inbound.is_automatic:
        mail["Auto-Submitted"] = "auto-replied"
    mail.set_content((inbound.choice[2] if inbound.choice else inbound.text or "") + "\n")
    if inbound.media is not None:
        maintype, _, subtype = MIME_TYPES[inbound.media].partition("/")
        name = f"sandbox.{subtype}"
        mail.add_attachment(FILES[inbound.media], maintype=maintype, subtype=subtype, filename=name)
    return _post(account, mail)


def _plain(text: str | None) -> str:
    """On one line, as headers require."""
    return " ".join("".join(char if char.isprintable() else " " for char in text or "").split())


def build_bounce(account: SandboxAccount, recipient: str, at: datetime, mail: Message) -> Message:
    """A report as in RFC 3464: text for people, fields for machines, the headers of the mail itself."""
    report = MIMEMultipart("report")
    report.set_param("report-type", "delivery-status")
    report["From"] = "Mail Delivery System <mailer-daemon@simulator.test>"
    report["To"] = parseaddr(str(mail["From"] or ""))[1] or account.public["address"]
    report["Subject"] = "Undelivered Mail Returned to Sender"
    report["Date"] = format_datetime(at)
    report["Message-ID"] = make_msgid(domain="simulator.test")
    report["Auto-Submitted"] = "auto-replied"
    report.attach(MIMEText(f"<{recipient}>: 550 5.1.1 No such user here"))
    whole, each = Message(), Message()
    whole["Reporting-MTA"] = "dns; simulator.test"
    each["Final-Recipient"], each["Action"], each["Status"] = f"rfc822; {recipient}", "failed", "5.1.1"
    each["Diagnostic-Code"] = "smtp; 550 5.1.1 No such user here"
    fields = Message()
    fields["Content-Type"] = "message/delivery-status"
    fields.set_payload([whole, each])
    report.attach(fields)
    report.attach(MIMEMessage(_only_headers(mail)))
    return report


def _only_headers(mail: Message) -> Message:
    headers = Message()
    for name in ("From", "To", "Subject", "Date", "Message-ID"):
        if mail[name] is not None:
            headers[name] = str(mail[name])
    headers.set_payload("")
    return headers


def _post(account: SandboxAccount, mail: Message) -> Post:
    body = mail.as_bytes(policy=policy.SMTP) if isinstance(mail, EmailMessage) else mail.as_bytes()
    headers = {"content-type": "message/rfc822"}
    if secret := account.secrets.get("hook_secret"):
        headers[SIGNATURE] = "sha256=" + sign(secret, body)
    return Post(headers, body)


SIMULATORS = [
    ChannelSimulator(
        source=Source.MAIL,
        path=None,
        get_address=lambda context: context.mail_sink.address(),
        build_inbound=build_inbound,
        build_message_id=lambda: make_msgid(domain="simulator.test"),
        hooks=[Hook(MAIL_PATH, answer)],
    )
]
